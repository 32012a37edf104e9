//go:build (e2e || soak) && unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"posthorn/tools/dbtest"
	"posthorn/tools/need"
)

// previous builds the release before: the commit before the one that added the newest migration. It skips where there
// is no history to build it from.
func previous(t *testing.T) (program string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	need.Programs(t, "git")
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		need.Missing(t, ".git", "The release before is built from the history: %v", err)
	}
	if git("rev-parse", "--is-shallow-repository") == "true" {
		need.Missing(t, "the history", "This is a shallow clone.")
	}
	files, err := filepath.Glob(filepath.Join(root, "db/migrations/*.sql"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	sort.Strings(files)
	newest, err := filepath.Rel(root, files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	commit := "HEAD" // of a migration that is not committed yet
	if added := git("log", "--diff-filter=A", "--format=%H", "-1", "--", newest); added != "" {
		commit = git("rev-parse", added+"^")
	}
	source := t.TempDir()
	archive := filepath.Join(source, "source.tar")
	git("archive", "--format=tar", "-o", archive, commit)
	if out, err := exec.Command("tar", "-C", source, "-xf", archive).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	program = filepath.Join(source, "posthorn-before")
	build := exec.Command("go", "build", "-trimpath", "-tags", "nomsgpack", "-o", program, "./web")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	need.Reached(t, "the module proxy", err, out)
	t.Logf("the release before is %s; the newest migration is %s", commit, filepath.Base(newest))
	return program
}

// TestAnUpgradeUnderLoadLosesNothing migrates while the release before serves, puts a new process of each kind beside
// the old ones, and stops the old ones, all under a client that goes on.
func TestAnUpgradeUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	old := place{program: previous(t)}
	const (
		perSecond = 150
		seconds   = 40
	)
	url := dbtest.Clone(t, "", nil)
	w := newWorldAt(t, []string{"POSTHORN_DATABASE_URL=" + url, "POSTHORN_MASTER_KEY=" + masterKey}, nil)
	oldWeb := launch(t, "web-before", w.environ, old, "web").ready()
	oldWorker := launch(t, "worker-before", w.environ, old, "worker").ready()
	w.serveAt(oldWeb)
	w.open(url)
	var made struct {
		Tenant string `json:"tenant_id"`
		Key    string `json:"api_key"`
	}
	command(t, w.environ, old, &made, "tenant", "create", "--name", "Acme", "--json")
	w.tenant, w.key = made.Tenant, made.Key
	paths := []string{"/one", "/two"}
	for _, path := range paths {
		w.endpoint(path, settings{"max_in_flight": 20})
	}
	batch := make([]emission, perSecond*seconds)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, perSecond, 30)
	}()
	flow := func(what string) {
		t.Helper()
		acked, ended := len(w.acknowledgements()), w.ask("SELECT count(*) FROM deliveries WHERE status >= 2")
		eventually(t, patience, what, func() bool {
			now := len(w.acknowledgements())
			return (now >= acked+2*perSecond || now == len(batch)) && w.ask("SELECT count(*) FROM deliveries WHERE status >= 2") >= min(ended+2*perSecond,
				len(paths)*len(batch))
		})
	}
	flow("events flow through the release before")
	started := time.Now()
	migrated := make(chan struct{}, 2)
	for range cap(migrated) { // two at once, and each twice
		go func() {
			defer func() { migrated <- struct{}{} }()
			for range 2 {
				if out, err := migrate(w.environ); err != nil {
					t.Errorf("migrate up: %v: %s", err, out)
				}
			}
		}()
	}
	for range cap(migrated) {
		<-migrated
	}
	t.Logf("migrated within %v under %d events/s", time.Since(started).Round(10*time.Millisecond), perSecond)
	flow("events flow through the release before on the new schema")
	newWeb, newWorker := w.launch("web", "web").ready(), w.launch("worker", "worker").ready()
	w.serveAt(oldWeb, newWeb)
	flow("events flow through both")
	w.serveAt(newWeb)
	if code := oldWeb.stop(); code != 0 {
		t.Errorf("the old web process ended with %d", code)
	}
	if code := oldWorker.stop(); code != 0 {
		t.Errorf("the old worker ended with %d", code)
	}
	<-done
	took := w.settled(len(paths)*len(batch), time.Minute)
	t.Logf("settled %v after the last acknowledgement; refusals by status: %v", took.Round(100*time.Millisecond), w.codes)
	if len(w.acknowledgements()) != len(batch) {
		t.Errorf("%d of %d events were acknowledged", len(w.acknowledgements()), len(batch))
	}
	w.balanced(len(paths))
	w.receiver.expectOnce(w.acknowledgements(), everyPath(paths...))
	if !newWorker.running() || newWorker.metric("attempts_total") == 0 {
		t.Error("the new worker made no attempt")
	}
	for _, p := range []*process{oldWeb, oldWorker} {
		for _, line := range p.log.everything() {
			if strings.Contains(line, `"level":"ERROR"`) {
				t.Errorf("%s complains of the new schema: %s", p.name, line)
			}
		}
	}
}

func migrate(environ []string) (string, error) {
	cmd := exec.Command(binary, "migrate", "up")
	cmd.Dir, cmd.Env = "/", append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, environ...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
