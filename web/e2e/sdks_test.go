//go:build e2e && unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"posthorn/tools/need"
)

// TestTheSDKsOfOtherLanguagesRunOneScenario installs the packages that `make sdks` made, as a user would, and runs
// the example of each language against a real server. The Go SDK's example is run by
// TestASecondProgramWrittenFromTheDocsEmitsListsReplaysAndVerifies.
func TestTheSDKsOfOtherLanguagesRunOneScenario(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	packages := filepath.Join(root, "bin", "sdks")
	made, err := filepath.Glob(filepath.Join(packages, "posthorn-*"))
	if err != nil || len(made) < 2 {
		need.Missing(t, "bin/sdks", "Run make sdks.")
	}
	w := newWorld(t, nil)
	serve := w.launch("serve", "serve").serving()
	said := regexp.MustCompile(`(?s)^emitted (evt_\w+)\nverified (evt_\w+) \{"order_id": ?"ord_1", ?"total": ?4200\}\nlisted dlv_\w+ delivered\nreplayed as dlv_\w+\nverified (evt_\w+)\nbatch 1500\n$`)
	for language, install := range map[string]string{
		"typescript": `cp "$1/client/typescript/example.mjs" . && npm init -y >/dev/null && npm install --no-audit --no-fund --loglevel=error "$1"/bin/sdks/posthorn-*.tgz >&2 && node example.mjs`,
		"python":     `python3 -m venv v && v/bin/pip install --quiet --disable-pip-version-check "$1"/bin/sdks/posthorn-*.whl >&2 && v/bin/python "$1/client/python/example.py"`,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
			defer cancel()
			run := exec.CommandContext(ctx, "bash", "-c", install, "bash", root)
			run.Dir = t.TempDir()
			run.Env = append(os.Environ(), "POSTHORN_URL="+serve.url, "POSTHORN_API_KEY="+w.key)
			var problems tail
			run.Stderr = &problems
			out, err := run.Output()
			if err != nil {
				t.Fatalf("%v: %s\n%s", err, out, problems.String())
			}
			ids := said.FindSubmatch(out)
			if ids == nil || string(ids[1]) != string(ids[2]) || string(ids[1]) != string(ids[3]) {
				t.Errorf("the example says\n%s", out)
			}
		})
	}
}

// tail keeps the last of what a program writes.
type tail struct{ text []byte }

func (b *tail) Write(p []byte) (int, error) {
	b.text = append(b.text, p...)
	if len(b.text) > 4000 {
		b.text = b.text[len(b.text)-4000:]
	}
	return len(p), nil
}

func (b *tail) String() string { return string(b.text) }
