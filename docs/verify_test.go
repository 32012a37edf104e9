package docs_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"posthorn/domain/signature"
	"posthorn/tools/need"
)

// attempt is a request that a receiver gets, and whether it is to trust it.
type attempt struct {
	Name    string            `json:"name"`
	Verify  string            `json:"verify"` // the function that checks it
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"` // base64
	Secret  string            `json:"secret"`
	Now     int64             `json:"now"`
	Trust   bool              `json:"trust"`
}

var functions = map[signature.Format]map[string]string{
	signature.XWebhook: {"go": "verifyXWebhook", "js": "verifyXWebhook", "python": "verify_x_webhook"},
	signature.TV1:      {"go": "verifyTV1", "js": "verifyTV1", "python": "verify_t_v1"},
	signature.BodyHex:  {"go": "verifyBodyHex", "js": "verifyBodyHex", "python": "verify_body_hex"},
	signature.Raw:      {"go": "verifyRaw", "js": "verifyRaw", "python": "verify_raw"},
}

// bodies are those of the vectors that signatures are held to.
func bodies(t *testing.T) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("../domain/signature/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Schemes map[string]struct {
			Vectors []struct {
				Name string
				Body struct {
					UTF8 *string
					B64  []byte
				}
			}
		}
	}
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, v := range corpus.Schemes["standard_webhooks_v1"].Vectors {
		if v.Body.UTF8 != nil {
			all[v.Name] = []byte(*v.Body.UTF8)
		} else if v.Body.B64 != nil {
			all[v.Name] = v.Body.B64
		}
	}
	if len(all) < 5 {
		t.Fatalf("%d bodies", len(all))
	}
	return all
}

const (
	oldSecret, newSecret = "the secret of last year", "whsec_bmV3IHNlY3JldCBvZiB0aGlzIHllYXI="
	signedAt             = 1700000000
)

// attempts are what the functions of a language are tried with.
func attempts(t *testing.T, language string) []attempt {
	t.Helper()
	var all []attempt
	for format, names := range functions {
		var keys []signature.Key
		for _, secret := range []string{newSecret, oldSecret} {
			key, err := signature.ParseKey(format, secret)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		for name, body := range bodies(t) {
			// both secrets, where there is room
			s := signature.Signing{Format: format, Keys: keys, Rotation: signature.SignAll}
			headers := map[string]string{}
			for _, h := range s.Headers(nil, signature.Message{EventID: "evt_1", DeliveryID: "dlv_1", EndpointID: "ep_1", Type: "order.completed"}, body,
				signature.Send{At: time.Unix(signedAt, 0), Attempt: 1}) {
				headers[strings.ToLower(h.Name)] = h.Value
			}
			good := attempt{
				Name:    string(format) + " " + name,
				Verify:  names[language],
				Headers: headers,
				Body:    base64.StdEncoding.EncodeToString(body),
				Secret:  newSecret,
				Now:     signedAt + 60,
				Trust:   true,
			}
			with := func(what string, change func(*attempt)) {
				a := good
				a.Name += ", " + what
				change(&a)
				all = append(all, a)
			}
			with("as sent", func(*attempt) {})
			with("the old secret", func(a *attempt) { a.Secret, a.Trust = oldSecret, !format.OneSlot() })
			with("a wrong secret", func(a *attempt) { a.Secret, a.Trust = "wrong", false })
			with("another body", func(a *attempt) {
				a.Body, a.Trust = base64.StdEncoding.EncodeToString(append([]byte("x"), body...)), false
			})
			with("too old", func(a *attempt) { a.Now, a.Trust = signedAt+301, format == signature.BodyHex })
			with("from the future", func(a *attempt) { a.Now, a.Trust = signedAt-301, format == signature.BodyHex })
			with("no headers", func(a *attempt) { a.Headers, a.Trust = map[string]string{}, false })
			with("part of a signature", func(a *attempt) {
				a.Headers, a.Trust = map[string]string{}, false
				for k, v := range headers {
					if strings.HasSuffix(k, "signature") {
						v = v[:len(v)/3] // less than its first signature
					}
					a.Headers[k] = v
				}
			})
		}
	}
	return all
}

var fences = regexp.MustCompile("(?ms)^```([a-z]+)( official)?\n(.*?)^```$")

// snippets are the examples of verify.md in a language, in their order.
func snippets(t *testing.T, language string, official bool) string {
	t.Helper()
	return snippetsOf(t, "verify.md", language, official)
}

func snippetsOf(t *testing.T, file, language string, official bool) string {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, m := range fences.FindAllStringSubmatch(string(page), -1) {
		if m[1] == language && (m[2] != "") == official {
			b.WriteString(m[3] + "\n")
		}
	}
	if b.Len() == 0 {
		t.Fatalf("the page has no examples in %s", language)
	}
	return b.String()
}

const goDriver = `
func main() {
	functions := map[string]func(http.Header, []byte, string, time.Time) bool{
		"verifyXWebhook": verifyXWebhook, "verifyTV1": verifyTV1, "verifyBodyHex": verifyBodyHex, "verifyRaw": verifyRaw,
	}
	var all []struct {
		Name, Verify, Secret string
		Headers              map[string]string
		Body                 []byte
		Now                  int64
		Trust                bool
	}
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		panic(err)
	}
	for _, a := range all {
		header := http.Header{}
		for k, v := range a.Headers {
			header.Set(k, v)
		}
		if functions[a.Verify](header, a.Body, a.Secret, time.Unix(a.Now, 0)) != a.Trust {
			fmt.Println("wrong:", a.Name)
		}
	}
	fmt.Println("tried", len(all))
}
`

const jsDriver = `
import { readFileSync } from "node:fs";
const functions = { verifyXWebhook, verifyTV1, verifyBodyHex, verifyRaw };
const all = JSON.parse(readFileSync(0));
for (const a of all) {
  if (functions[a.verify](a.headers, Buffer.from(a.body, "base64"), a.secret, a.now) !== a.trust) console.log("wrong:", a.name);
}
console.log("tried", all.length);
`

const pythonDriver = `
import base64, json, sys
everything = json.load(sys.stdin)
for a in everything:
    if globals()[a["verify"]](a["headers"], base64.b64decode(a["body"]), a["secret"], a["now"]) is not a["trust"]:
        print("wrong:", a["name"])
print("tried", len(everything))
`

// try runs a program over the attempts and reads what it got wrong.
func try(t *testing.T, language string, command *exec.Cmd) {
	t.Helper()
	all := attempts(t, language)
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	command.Stdin = bytes.NewReader(in)
	out, err := command.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != fmt.Sprintf("tried %d", len(all)) {
		t.Errorf("%v\n%s", err, out)
	}
}

func write(t *testing.T, name, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheGoExamplesVerify(t *testing.T) {
	t.Parallel()
	source := "package main\n\n" + strings.Replace(snippets(t, "go", false), "import (", "import (\n\t\"encoding/json\"\n\t\"fmt\"\n\t\"os\"\n\tstandardwebhooks \"github.com/standard-webhooks/standard-webhooks/libraries/go\"", 1) +
		snippets(t, "go", true) + "\nvar _ = verifyStandard\n" + goDriver
	try(t, "go", exec.CommandContext(t.Context(), "go", "run", write(t, "main.go", source)))
}

func TestTheExampleOfTheSDKCompiles(t *testing.T) {
	t.Parallel()
	source := `package main

import (
	"context"
	"os"

	"posthorn/client"
)

func main() {
	ctx := context.Background()
	order := struct{ ID string }{"ord_1"}
	` + snippetsOf(t, "cli.md", "go", false) + `
	_, _ = accepted, err
}
`
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, write(t, "main.go", source)).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheNodeExamplesVerify(t *testing.T) {
	t.Parallel()
	node := need.Program(t, "node")
	try(t, "js", exec.CommandContext(t.Context(), node, write(t, "verify.mjs", snippets(t, "js", false)+jsDriver)))
}

func TestThePythonExamplesVerify(t *testing.T) {
	t.Parallel()
	python := need.Program(t, "python3")
	try(t, "python", exec.CommandContext(t.Context(), python, write(t, "verify.py", snippets(t, "python", false)+pythonDriver)))
}

// Where the official libraries are can't be said beforehand; they are fetched into a folder of the test's own, when
// asked for.
func TestTheOfficialLibrariesTakeWhatPosthornSigns(t *testing.T) {
	t.Parallel()
	if os.Getenv("POSTHORN_FETCH") == "" {
		need.Missing(t, "make sdks", "It sets POSTHORN_FETCH, fetches the official libraries from npm and PyPI, and runs this test.")
	}
	const secret = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
	key, err := signature.ParseKey(signature.Standard, secret)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"id":"evt_1","type":"order.completed","timestamp":"2026-01-31T12:00:00.000Z","data":{"note":"<ä>"}}`)
	headers := map[string]string{}
	s := signature.Signing{Format: signature.Standard, Keys: []signature.Key{key}}
	for _, h := range s.Headers(nil, signature.Message{EventID: "evt_1"}, body, signature.Send{At: time.Now(), Attempt: 1}) {
		headers[http.CanonicalHeaderKey(h.Name)] = h.Value
		headers[strings.ToLower(h.Name)] = h.Value
	}
	in, err := json.Marshal(map[string]any{"headers": headers, "body": string(body), "secret": secret})
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, dir string, name string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Stdin = dir, bytes.NewReader(in)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const both = "good true, forged false"
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		need.Programs(t, "npm")
		file := write(t, "official.mjs", snippets(t, "js", true)+`
import { readFileSync } from "node:fs";
const a = JSON.parse(readFileSync(0));
const holds = (body) => { try { verifyStandard(a.headers, body, a.secret); return true; } catch { return false; } };
console.log("good " + holds(a.body) + ", forged " + holds(a.body + " "));
`)
		run(t, filepath.Dir(file), "npm", "install", "--silent", "--no-audit", "--no-fund", "standardwebhooks@1")
		if got := run(t, filepath.Dir(file), "node", file); got != both {
			t.Error(got)
		}
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		need.Programs(t, "python3")
		file := write(t, "official.py", snippets(t, "python", true)+`
import json, sys
a = json.load(sys.stdin)
def holds(body):
    try:
        verify_standard(a["headers"], body, a["secret"])
        return "true"
    except Exception:
        return "false"
print("good " + holds(a["body"]) + ", forged " + holds(a["body"] + " "))
`)
		dir := filepath.Dir(file)
		run(t, dir, "python3", "-m", "venv", "env")
		run(t, dir, filepath.Join(dir, "env", "bin", "pip"), "install", "--quiet", "standardwebhooks")
		if got := run(t, dir, filepath.Join(dir, "env", "bin", "python"), file); got != both {
			t.Error(got)
		}
	})
}
