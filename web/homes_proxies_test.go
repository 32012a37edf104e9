package main

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posthorn/domain/id"
	"posthorn/tools/need"
)

// TestOneHostNameLeadsToTheHomeOfTheKey runs the proxies of the page in front of two homes: keys and cookies lead to
// their homes, and everything else to the default one, which leads on what has moved.
func TestOneHostNameLeadsToTheHomeOfTheKey(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T, one, two *someHome) (front string, client *http.Client){
		"haproxy": behindHAProxy,
		"nginx":   homesBehindNginx,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need.Programs(t, name)
			homes := newHomes(t, "eu1", "eu2")
			one, two := homes[0], homes[1]
			front, client := run(t, one, two)
			ask := func(method, path, key, body string, header ...string) answer {
				t.Helper()
				return asker{t, client}.request(method, front+path, key, body, header...)
			}
			old := "phk_" + strings.Repeat("a", 49)
			one.gives(t, "eu2", uuidOf(t, id.Tenant, two.tenant), old) // moved, with a key that names its first home
			for _, try := range []struct{ name, key, by string }{
				{"a key of the first", one.key, "eu1"},
				{"a key of the second", two.key, "eu2"},
			} {
				if got := ask("POST", "/api/v1/events", try.key, anEvent); got.status != http.StatusAccepted || got.header.Get("Posthorn-Home") != try.by {
					t.Errorf("%s: %d by %s %s", try.name, got.status, got.header.Get("Posthorn-Home"), got.body)
				}
			}
			if got := ask("GET", "/api/v1/events", "phk_"+strings.Repeat("b", 49), ""); got.header.Get("Posthorn-Home") != "eu1" {
				t.Errorf("a key without a home: by %s", got.header.Get("Posthorn-Home"))
			}
			if got := ask("GET", "/api/v1/events", old, ""); got.header.Get("Posthorn-Home") != "eu2" || got.status != http.StatusUnauthorized {
				t.Errorf("a key of a tenant that has moved: %d by %s", got.status, got.header.Get("Posthorn-Home"))
			}
			for cookie, by := range map[string]string{
				"posthorn-eu1=x": "eu1", "posthorn-eu2=x": "eu2", "a=b; __Host-posthorn-eu2=x; c=d": "eu2", "posthorn-portal-eu2=x": "eu2",
				"__Host-posthorn-console-eu2=x": "eu2", "other-eu2=x": "eu1", "": "eu1",
			} {
				if got := ask("GET", "/sign-in", "", "", "Accept", "text/html", "Cookie", cookie); got.header.Get("Posthorn-Home") != by {
					t.Errorf("a browser with %q: by %s", cookie, got.header.Get("Posthorn-Home"))
				}
			}
			// A key decides, whatever cookies say.
			if got := ask("GET", "/api/v1/events", one.key, "", "Cookie", "posthorn-eu2=x"); got.header.Get("Posthorn-Home") != "eu1" {
				t.Errorf("a key beside a cookie: by %s", got.header.Get("Posthorn-Home"))
			}
		})
	}
}

// proxied is a client of a proxy at an address, with a certificate of the test.
func proxied(t *testing.T, dir string) (certificate, key string, client *http.Client) {
	t.Helper()
	certificate, key, pool := selfSigned(t, dir, "hooks.example.com")
	client = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "hooks.example.com", MinVersion: tls.VersionTLS12}},
		CheckRedirect: stay.CheckRedirect,
	}
	t.Cleanup(client.CloseIdleConnections)
	return certificate, key, client
}

func behindHAProxy(t *testing.T, one, two *someHome) (front string, client *http.Client) {
	t.Helper()
	dir, at := t.TempDir(), freeAddress(t)
	certificate, key, client := proxied(t, dir)
	var pem []byte
	for _, file := range []string{certificate, key} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pem = append(pem, text...)
	}
	both := filepath.Join(dir, "both.pem")
	page := strings.NewReplacer("bind :443 ", "bind "+at+" ", "/etc/haproxy/hooks.example.com.pem", both, "10.0.0.1:8080", one.Config.Addr, "10.0.1.1:8080", two.Config.Addr).
		Replace(examples(t, "homes.md", "haproxy", 1)[0])
	file := filepath.Join(dir, "haproxy.cfg")
	for name, text := range map[string][]byte{both: pem, file: []byte("defaults\n  timeout connect 5s\n  timeout client 60s\n  timeout server 120s\n" + page)} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runProxy(t, at, "haproxy", "-db", "-f", file)
	return "https://" + at, client
}

func homesBehindNginx(t *testing.T, one, two *someHome) (front string, client *http.Client) {
	t.Helper()
	dir, at := t.TempDir(), freeAddress(t)
	certificate, key, client := proxied(t, dir)
	page := strings.NewReplacer("listen 443 ", "listen "+at+" ", "/etc/ssl/hooks.example.com.pem", certificate, "/etc/ssl/hooks.example.com.key", key,
		"10.0.0.1:8080", one.Config.Addr, "10.0.1.1:8080", two.Config.Addr).Replace(examples(t, "homes.md", "nginx", 1)[0])
	runNginx(t, dir, at, page)
	return "https://" + at, client
}
