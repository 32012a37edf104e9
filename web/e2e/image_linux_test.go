//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/tools/need"
)

// inImage runs a program in an unpacked image as a container engine does: in a mount namespace, with the image as a
// root that cannot be written to, as the image's user, which gains no rights.
const inImage = `#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
exec unshare --mount sh -c '
  root=$1; shift
  mount --bind "$root" "$root" && mount -o remount,bind,ro "$root" && cd "$root" &&
  exec setpriv --no-new-privs chroot --userspec=65532:65532 "$root" /posthorn "$@"
' sh ROOT "$@"
`

// TestTheImageServesAndDeliversOnAReadOnlyFilesystem unpacks the image that `make image` made and runs it as its
// configuration says: not as root, with a file system that is read-only.
func TestTheImageServesAndDeliversOnAReadOnlyFilesystem(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(root(t), "bin", "image", "posthorn-linux-"+runtime.GOARCH+".tar")
	if _, err := os.Stat(archive); err != nil {
		need.Missing(t, "bin/image", "Run make image.")
	}
	need.Root(t)      // to change the root directory
	base := folder(t) // which others can walk through
	image := filepath.Join(base, "root")
	config := unpackImage(t, archive, image)
	if config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{"/posthorn"}) ||
		!slices.Equal(config.Healthcheck.Test, []string{"CMD", "/posthorn", "ready"}) {
		t.Errorf("the image is configured as %+v", config)
	}
	start := filepath.Join(base, "start")
	if err := os.WriteFile(start, []byte(strings.Replace(inImage, "ROOT", image, 1)), 0o755); err != nil {
		t.Fatal(err)
	}

	postgres := newServer(t, "127.0.0.1", freePort(t), place{})
	environ := append(slices.Clone(config.Env), "POSTHORN_DATABASE_URL="+urlOf(postgres), "POSTHORN_MASTER_KEY="+masterKey)
	w := newWorldAt(t, environ, nil)
	port := freePort(t)
	at := place{program: start}
	own := []string{"POSTHORN_ADDR=127.0.0.1:0", "POSTHORN_METRICS_ADDR=127.0.0.1:" + port}
	serve := w.launchAt(at, own, "serve", config.Cmd...).ready()
	w.serveAt(serve)
	w.open(urlOf(postgres))
	w.makeTenant()
	w.endpoint("/hook", settings{"event_types": []string{"order.*"}})
	w.emitAll([]emission{event("order.completed", 1)}, 0, 1)
	w.settled(1, time.Minute)
	w.receiver.expectOnce(w.acknowledgements(), everyPath("/hook"))

	ask := func() (string, int) {
		cmd := exec.Command(start, "ready")
		cmd.Env = append(slices.Clone(environ), own...)
		out, _ := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
	}
	if said, code := ask(); said != "ready" || code != 0 {
		t.Errorf("the health check of a process that is ready says %q and ends with %d", said, code)
	}
	if code := serve.stop(); code != 0 {
		t.Errorf("the process ends with %d", code)
	}
	if said, code := ask(); code != 1 || !strings.Contains(said, "no process responds") {
		t.Errorf("the health check without a process says %q and ends with %d", said, code)
	}
}

// imageConfig is what an engine reads of an image's configuration.
type imageConfig struct {
	User        string
	Entrypoint  []string
	Cmd         []string
	Env         []string
	Healthcheck struct{ Test []string }
}

// unpackImage writes the one layer of an archive to a directory, and returns the image's configuration. It unpacks with
// tar, as people do: Go's reader accepts an archive that is cut off.
func unpackImage(t *testing.T, archive, into string) imageConfig {
	t.Helper()
	outer := t.TempDir()
	untar(t, archive, outer)
	var manifest []struct {
		Config string
		Layers []string
	}
	readJSON(t, filepath.Join(outer, "manifest.json"), &manifest)
	if len(manifest) != 1 || len(manifest[0].Layers) != 1 {
		t.Fatalf("the archive's manifest is %+v", manifest)
	}
	var image struct {
		Config imageConfig `json:"config"`
	}
	readJSON(t, filepath.Join(outer, manifest[0].Config), &image)
	if err := os.MkdirAll(into, 0o755); err != nil {
		t.Fatal(err)
	}
	untar(t, filepath.Join(outer, manifest[0].Layers[0]), into)
	return image.Config
}

func untar(t *testing.T, archive, into string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xpf", archive, "--numeric-owner", "-C", into).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
