package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"posthorn/tools/need"
)

var portalSnippets = regexp.MustCompile("(?ms)^```(sh|go|js|python|html)\n(.*?)^```$")

// TestTheSnippetsOfThePortalPageGiveLinks runs what docs/portal.md says in each language against a server with the
// page's settings, and opens the links. Python and Node run where they are installed.
func TestTheSnippetsOfThePortalPageGiveLinks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/portal.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{}
	for _, m := range portalSnippets.FindAllStringSubmatch(string(page), -1) {
		shown[m[1]] = append(shown[m[1]], m[2])
	}
	environ := append(newDatabase(t), strings.TrimSpace(shown["sh"][0]))
	var key struct {
		APIKey string `json:"api_key"`
	}
	succeed(t, environ, &key, "key", "create", "--platform", "--scopes", "members:write,tenants:write", "--name", "Shop", "--json")
	p := program(t, environ, Parts{Web: true})
	env := append(os.Environ(), "POSTHORN_URL="+p.URL(), "POSTHORN_API_KEY="+key.APIKey)
	opens := func(t *testing.T, out string) {
		t.Helper()
		link := regexp.MustCompile(regexp.QuoteMeta(p.URL()) + `/portal/open\?token=[A-Za-z0-9_%-]+`).FindString(out)
		if link == "" {
			t.Fatalf("no link in %s", out)
		}
		if to := leadsTo(t, link); !strings.HasPrefix(to, "/t/ten_") {
			t.Errorf("the link leads to %q", to)
		}
	}
	for language, program := range map[string][3]string{
		"sh":     {"sh", "link.sh", shown["sh"][1]},
		"js":     {"node", "link.mjs", shown["js"][0] + `console.log(await portalLink("customer_42"));`},
		"python": {"python3", "link.py", shown["python"][0] + `print(portal_link("customer_42"))`},
	} {
		t.Run(language, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), program[1])
			if err := os.WriteFile(file, []byte(program[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			need.Program(t, program[0])
			command := exec.CommandContext(t.Context(), program[0], file)
			command.Env = env
			out, err := command.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			opens(t, string(out))
		})
	}
	t.Run("go", func(t *testing.T) {
		example, err := os.ReadFile("../client/example/portal/main.go")
		if err != nil || !strings.Contains(string(example), strings.TrimSpace(shown["go"][0])) {
			t.Fatalf("the example holds no\n%s", shown["go"][0])
		}
		product := runExample(t, env, "posthorn/client/example/portal")
		opens(t, reply(t, http.MethodPost, product+"/webhooks/portal-link"))
		script := regexp.MustCompile(`src="https://[^/"]+(/[^"]+)"`).FindStringSubmatch(shown["html"][0])[1]
		if html := reply(t, http.MethodGet, product+"/"); !strings.Contains(html, p.URL()+script) || !strings.Contains(html, "<posthorn-portal link=") {
			t.Errorf("the example's page is %s", html)
		}
		if code := reply(t, http.MethodGet, p.URL()+script); !strings.Contains(code, `customElements.define("posthorn-portal"`) {
			t.Errorf("%s is %.200s", script, code)
		}
	})
	if _, err := exec.LookPath("node"); err == nil {
		file := filepath.Join(t.TempDir(), "listener.mjs")
		if err := os.WriteFile(file, []byte(shown["js"][1]), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "node", "--check", file).CombinedOutput(); err != nil {
			t.Errorf("the listener: %s", out)
		}
	}
}

// leadsTo is the path that a link redirects to.
func leadsTo(t *testing.T, link string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.Header.Get("Location")
}

// runExample starts an example that listens at ADDR, and gives its URL once it does.
func runExample(t *testing.T, env []string, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	binary := filepath.Join(t.TempDir(), "example")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, name).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	command := exec.CommandContext(t.Context(), binary)
	command.Env = append(env, "ADDR="+address)
	stderr, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if _, err := stderr.Read(make([]byte, 1)); err != nil { // its first words are the address
		t.Fatal(err)
	}
	eventually(t, "the example listens", func() bool {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return "http://" + address
}

// reply is the body of a response that must be good.
func reply(t *testing.T, method, address string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %v %s", address, res.StatusCode, err, body)
	}
	return string(body)
}
