//go:build (e2e || soak) && unix

package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posthorn/tools/need"
)

// copiedPrograms is an installation of PostgreSQL whose files a test can replace: its programs and its libraries.
func copiedPrograms(t *testing.T) (bin, libraries string) {
	t.Helper()
	bin = filepath.Dir(postgresProgram(t, "postgres"))
	version := filepath.Base(filepath.Dir(bin))
	if bin != filepath.Join("/usr/lib/postgresql", version, "bin") {
		need.Missing(t, "a PostgreSQL of Debian", "That of %s is installed in another way.", bin)
	}
	root := dataDir(t)
	for _, folder := range []string{"lib/postgresql", "share/postgresql"} {
		to := filepath.Join(root, folder)
		if err := os.MkdirAll(to, 0o755); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command("cp", "-R", filepath.Join("/usr", folder, version), to).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, said)
		}
	}
	own := filepath.Join(root, "lib/postgresql", version)
	return filepath.Join(own, "bin"), filepath.Join(own, "lib")
}

// TestAnUpdateOfPostgreSQLUnderLoadLosesNothing replaces the files of the private PostgreSQL while events flow, as a
// package manager does, by a library that the running server can't load.
func TestAnUpdateOfPostgreSQLUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	const perSecond = 50
	bin, libraries := copiedPrograms(t)
	dir := dataDir(t)
	w := newWorldAt(t, []string{"POSTHORN_DATA_DIR=" + dir, "PATH=" + bin + ":" + os.Getenv("PATH")}, nil)
	serve := w.launch("serve", "serve").ready()
	w.serveAt(serve)
	w.open(embeddedURL(dir))
	w.makeTenant()
	w.endpoint("/hook", settings{"max_in_flight": 20})
	pid := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "postgres", "data", "postmaster.pid"))
		if err != nil {
			return "none"
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return line
	}
	first := pid()
	if program, err := os.Readlink("/proc/" + first + "/exe"); err == nil && filepath.Dir(program) != bin {
		t.Fatalf("it runs %s and not the copy", program)
	}
	batch := make([]emission, perSecond*20)
	for i := range batch {
		batch[i] = event("order.completed", i)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.emitAll(batch, perSecond, 20)
	}()
	eventually(t, patience, "events flow", func() bool { return len(w.acknowledgements()) >= perSecond })

	// The first half of an update: a library that no server can load. Then the whole of it.
	library := filepath.Join(libraries, "plpgsql.so")
	good, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	put := func(content []byte) {
		t.Helper()
		if err := os.Remove(library); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(library, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	updated := time.Now()
	put([]byte("half of a library"))
	eventually(t, 30*time.Second, "the process says that it is not ready", func() bool {
		return status(serve.metrics+"/readyz") == http.StatusServiceUnavailable
	})
	put(good)
	eventually(t, 2*time.Minute, "PostgreSQL has restarted and the process is ready", func() bool {
		return pid() != first && status(serve.metrics+"/readyz") == http.StatusOK
	})
	took := time.Since(updated)
	if took > 2*time.Minute {
		t.Errorf("ready %v after the update, more than two minutes", took)
	}
	<-done
	w.sql.Reset() // its connections were to the server before
	settled := w.settled(len(batch), time.Minute)
	t.Logf("ready again %v after the update, settled %v after the last event; refusals by status: %v", took.Round(time.Second), settled.Round(time.Millisecond), w.codes)
	if len(w.acknowledgements()) != len(batch) {
		t.Errorf("%d of %d keys were acknowledged", len(w.acknowledgements()), len(batch))
	}
	if restarts := serve.log.count("restarting PostgreSQL"); restarts != 1 {
		t.Errorf("PostgreSQL was restarted %d times", restarts)
	}
	w.balanced(1)
	w.receiver.expect(w.acknowledgements(), everyPath("/hook"), func(string) int { return 1 })
}
