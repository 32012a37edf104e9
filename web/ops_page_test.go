package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/need"
)

// examples are the examples of a page of docs/ops in a language.
func examples(t *testing.T, page, language string, want int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "ops", page))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) != want {
		t.Fatalf("%s has %d examples in %s, this test knows %d", page, len(all), language, want)
	}
	return all
}

// typed runs the commands of a page in a folder; the first failure ends them. posthorn is this test's program.
func typed(t *testing.T, dir string, environ []string, commands string) (said string, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	script := "#!/bin/sh\n" + processVariable + "=1 exec " + self + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(bin, "posthorn"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + dir}, environ...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheCommandsOfTheOperationsPagesCanBeTyped(t *testing.T) {
	t.Parallel()
	need.Programs(t, "openssl", "curl")
	environ := newDatabase(t)
	var m made
	succeed(t, environ, &m, "tenant", "create", "--name", "Acme", "--json")
	p := program(t, environ, Parts{Web: true})
	createEndpoint(t, p.URL(), m.APIKey)
	keys := examples(t, "keys.md", "sh", 2)
	proxied := newDatabase(t) // the other's master key is rotated meanwhile
	var of made
	succeed(t, proxied, &of, "tenant", "create", "--name", "Acme", "--json")
	for page, c := range map[string]struct {
		environ  []string
		commands string
		says     string
	}{
		"console.md": {environ, examples(t, "console.md", "sh", 1)[0], "/console/setup"},
		"keys.md, the master key": {
			append([]string{"POSTHORN_MASTER_KEY=" + otherMasterKey + "," + testMasterKey}, environ[:1]...), keys[0], "secrets were encrypted again",
		},
		"keys.md, API keys": {environ, keys[1], `"api_key":"php_`},
		"egress.md":         {append([]string{"POSTHORN_EGRESS_PROXY_ALLOW=10.0.0.0/8"}, proxied...), egressCommands(t, of.TenantID), "No egress proxies"},
		"upgrade.md":        {emptyDatabase(t), examples(t, "upgrade.md", "sh", 1)[0], "applied"},
		"deploy.md":         {environ, strings.ReplaceAll(examples(t, "deploy.md", "sh", 2)[1], "https://posthorn.example.com", p.URL()), `"api_key"`},
	} {
		if said, err := typed(t, t.TempDir(), c.environ, c.commands); err != nil || !strings.Contains(said, c.says) ||
			strings.Contains(said, "missing") {
			t.Errorf("%s: %v\n%s", page, err, said)
		}
	}
}

// egressCommands are those of the page of egress proxies, for a tenant that there is and with a file that there is.
func egressCommands(t *testing.T, tenant string) string {
	t.Helper()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("TENANT_ID", tenant, "/run/secrets/proxy", password).Replace(examples(t, "egress.md", "sh", 1)[0])
	return text + "\nposthorn egress-proxy remove\nposthorn egress-proxy list\n"
}

func TestTheSettingsOfTheDeploymentPageAreTaken(t *testing.T) {
	t.Parallel()
	var environ []string
	for line := range strings.Lines(examples(t, "deploy.md", "sh", 2)[0]) {
		setting, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		environ = append(environ, strings.Replace(setting, "MASTER_KEY=...", "MASTER_KEY="+testMasterKey, 1))
	}
	cfg, err := loadConfig(environ)
	if err != nil || len(environ) != 3 || cfg.BaseURL != "https://posthorn.example.com" {
		t.Errorf("%q: %v", environ, err)
	}
}

func TestTheUnitsAreOnesThatSystemdTakes(t *testing.T) {
	t.Parallel()
	need.Programs(t, "systemd-analyze")
	dir := t.TempDir()
	for _, name := range []string{"posthorn-web.service", "posthorn-worker.service"} {
		text, err := os.ReadFile(filepath.Join("..", "docs", "ops", name))
		if err != nil {
			t.Fatal(err)
		}
		unit := strings.Replace(string(text), "/usr/local/bin/posthorn", "/bin/true", 1) // one that is there
		if err := os.WriteFile(filepath.Join(dir, name), []byte(unit), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", filepath.Join(dir, name)).CombinedOutput()
		if err != nil || strings.Contains(string(said), dir) {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}

// selfSigned writes a certificate for the page's host, and its key.
func selfSigned(t *testing.T, dir, host string) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, pool = filepath.Join(dir, "host.pem"), filepath.Join(dir, "host.key"), x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(text)
	for file, content := range map[string][]byte{
		certificate: text,
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key, pool
}

// behindNginx starts an nginx with the page's configuration in front of two servers, and returns a client that connects
// only to it.
func behindNginx(t *testing.T, one, two string) *http.Client {
	t.Helper()
	need.Programs(t, "nginx")
	front := freeAddress(t)
	dir := t.TempDir()
	certificate, key, pool := selfSigned(t, dir, "posthorn.example.com")
	page := strings.NewReplacer(
		"listen 443 ", "listen "+front+" ", "/etc/ssl/posthorn.example.com.pem", certificate, "/etc/ssl/posthorn.example.com.key", key,
		"10.0.0.11:8080", one, "10.0.0.12:8080", two,
	).Replace(examples(t, "deploy.md", "nginx", 1)[0])
	runNginx(t, dir, front, page)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, front)
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// runNginx runs nginx with a configuration of a page, and returns when it listens.
func runNginx(t *testing.T, dir, front, page string) {
	t.Helper()
	var whole bytes.Buffer
	if os.Getuid() == 0 {
		whole.WriteString("user root;\n") // who may write into the test's folder
	}
	fmt.Fprintf(&whole, "daemon off;\nerror_log stderr;\npid %s/pid;\nworker_processes 1;\nevents {}\nhttp {\naccess_log off;\n", dir)
	for _, part := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&whole, "%s_temp_path %s/%s;\n", part, dir, part)
	}
	whole.WriteString(page + "}\n")
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, whole.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.CommandContext(t.Context(), "nginx", "-t", "-q", "-p", dir, "-c", file).CombinedOutput(); err != nil {
		t.Fatalf("nginx: %v\n%s", err, said)
	}
	runProxy(t, front, "nginx", "-p", dir, "-c", file)
}

// runProxy runs a proxy, and returns when it listens.
func runProxy(t *testing.T, front, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	said := newOutput()
	cmd.Stdout, cmd.Stderr = said, said
	// It ends at once, and its worker with it. An interrupt would be ignored by what a script has started with &.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, said)
		}
	})
	dialer := &net.Dialer{}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		conn, err := dialer.DialContext(t.Context(), "tcp", front)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestTheProxyOfThePagePassesOnWhatPosthornNeeds(t *testing.T) {
	t.Parallel()
	seen, more := make(chan http.Header, 1), make(chan struct{})
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			_, _ = io.WriteString(w, "first\n")
			_ = http.NewResponseController(w).Flush()
			<-more
			_, _ = io.WriteString(w, "second\n")
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		h := r.Header.Clone()
		h.Set("Host", r.Host)
		h.Set("Length", fmt.Sprint(n))
		seen <- h
	}))
	t.Cleanup(backend.Close)
	client := behindNginx(t, backend.Listener.Addr().String(), backend.Listener.Addr().String())
	ask := func(method, path string, body io.Reader) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://posthorn.example.com"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		// what a client says of itself comes before what the proxy knows
		req.Header.Set("X-Forwarded-For", "203.0.113.9")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	// A batch of 10 MiB, the largest body that there is.
	if res := ask("POST", "/api/v1/events/batch", bytes.NewReader(make([]byte, 10<<20))); res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Fatalf("%s %s", res.Status, res.Proto)
	}
	if h := <-seen; h.Get("Host") != "posthorn.example.com" || h.Get("X-Forwarded-For") != "203.0.113.9, 127.0.0.1" || h.Get("Length") != fmt.Sprint(10<<20) {
		t.Errorf("Posthorn gets %v", h)
	}
	lines := bufio.NewReader(ask("GET", "/stream", nil).Body)
	if line, err := lines.ReadString('\n'); err != nil || line != "first\n" {
		t.Errorf("a stream is held back: %q %v", line, err)
	}
	close(more)
	if line, err := lines.ReadString('\n'); err != nil || line != "second\n" {
		t.Errorf("%q %v", line, err)
	}
}
