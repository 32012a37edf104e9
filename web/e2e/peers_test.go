//go:build e2e && unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// make peers runs a load against products by their addresses. Here the product is the real Posthorn.
func TestPeersMeasuresARunningPosthorn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	serve := w.launch("serve", "serve").ready()
	var made struct {
		Key string `json:"api_key"`
	}
	command(t, w.environ, w.at, &made, "key", "create", "--platform", "--scopes", "all", "--json")
	bench := filepath.Join(t.TempDir(), "bench")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", bench, "../../tools/bench")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(t.TempDir(), "peers.txt")
	line := "# what runs here\nposthorn url=" + serve.url + " key=$PEERS_KEY pid=posthorn:" + strconv.Itoa(serve.cmd.Process.Pid) + "\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	peers := exec.CommandContext(t.Context(), bench, "peers", "-file", file, "-tenants", "3", "-c", "8", "-events", "600", "-light", "20", "-span", "3s")
	peers.Env = append(os.Environ(), "PEERS_KEY="+made.Key)
	began := time.Now()
	out, err := peers.CombinedOutput()
	if err != nil {
		t.Fatalf("%v after %v\n%s", err, time.Since(began), out)
	}
	// product, raw hop, deliveries, CPU, light, rate, half, RSS, refused, lost, doubled
	row := regexp.MustCompile(`(?m)^\| posthorn\s*\| [1-9]\d*\s*\| [1-9]\d*\s*\| posthorn [1-9]\d*\s*\| \d+\.\d / \d+\.\d\s*\| [1-9]\d*/s\s*\| \d+\.\d / \d+\.\d\s*\| posthorn [1-9]\d*\s*\| 0\s*\| 0\s*\| 0\s*\|$`)
	if !row.Match(out) || strings.Contains(string(out), made.Key) {
		t.Errorf("%s", out)
	}
	if n := w.ask("SELECT count(*) FROM deliveries WHERE status <> 2"); n != 0 {
		t.Errorf("%d deliveries are not delivered", n)
	}
}
