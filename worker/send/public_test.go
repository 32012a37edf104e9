package send

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/signature"
	"posthorn/tools/need"
)

// The private keys of a tenant and of the platform.
var tenantSeed, platformSeed = [32]byte{1}, [32]byte{2}

func publicOf(seed [32]byte) ed25519.PublicKey {
	return ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)
}

// received is a request as a receiver gets it.
type received struct {
	Method  string      `json:"method"`
	URL     string      `json:"url"`
	Headers http.Header `json:"headers"`
	Body    string      `json:"body"`
}

// publicReceiver accepts requests and returns a function that takes what came.
func publicReceiver(t testing.TB) (address string, take func() []received) {
	t.Helper()
	var mu sync.Mutex
	var all []received
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, received{r.Method, "http://" + r.Host + r.URL.RequestURI(), r.Header, string(body)})
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []received {
		mu.Lock()
		defer mu.Unlock()
		got := all
		all = nil
		return got
	}
}

// publicSender signs as the platform, and publicDestination with the tenant's key.
func publicSender(t testing.TB) *Sender {
	t.Helper()
	s := newTestSender(t)
	s.SetBot(httpsig.NewBot("https://Posthorn.example.com:443", []httpsig.Signer{httpsig.NewSigner(platformSeed, httpsig.Span{})}))
	return s
}

func publicDestination(t testing.TB, address string) *Destination {
	t.Helper()
	to := someDestination(t, address)
	to.public, to.dedupe = endpoint.BothPublic, "webhook-id"
	to.signers = []httpsig.Signer{httpsig.NewSigner(tenantSeed, httpsig.Span{})}
	return to
}

var inputPattern = regexp.MustCompile(`(\w+)=(\(([^)]*)\)[^,]*)`)

// verifyPublic checks a signature of a request as RFC 9421 section 3.2 says, by the receiver's own view of the request.
func verifyPublic(r received, label string, key ed25519.PublicKey) error {
	for _, in := range inputPattern.FindAllStringSubmatch(r.Headers.Get("Signature-Input"), -1) {
		if in[1] != label {
			continue
		}
		var base strings.Builder
		for _, name := range strings.Fields(in[3]) {
			base.WriteString(name + ": " + componentOf(r, name) + "\n")
		}
		base.WriteString(`"@signature-params": ` + in[2])
		_, value, _ := strings.Cut(r.Headers.Get("Signature"), label+"=:")
		value, _, _ = strings.Cut(value, ":")
		raw, err := base64.StdEncoding.DecodeString(value)
		if err != nil || !ed25519.Verify(key, []byte(base.String()), raw) {
			return fmt.Errorf("the signature %s does not hold for\n%s", label, base.String())
		}
		return nil
	}
	return fmt.Errorf("there is no signature %s", label)
}

func componentOf(r received, name string) string {
	_, rest, _ := strings.Cut(r.URL, "://")
	host, target, _ := strings.Cut(rest, "/")
	path, query, asks := strings.Cut("/"+target, "?")
	switch bare := strings.Trim(name, `"`); {
	case bare == "@method":
		return r.Method
	case bare == "@authority":
		return host
	case bare == "@path":
		return path
	case bare == "@query" && asks:
		return "?" + query
	case name == `"signature-agent";key="bot"`:
		return strings.TrimPrefix(r.Headers.Get("Signature-Agent"), "bot=")
	default:
		return r.Headers.Get(bare)
	}
}

func TestRequestsAreSignedForAnybodyAndKeptAsTheyWereSent(t *testing.T) {
	t.Parallel()
	s := publicSender(t)
	address, take := publicReceiver(t)
	for _, c := range []struct{ path, data string }{
		{"/hook", `{"a":1}`},
		{"/hook?token=x", `{"note":"<ä>"}`},
		{"", `{"large":"` + strings.Repeat("x", maxSmall) + `"}`},
	} {
		to := publicDestination(t, address+c.path)
		m := someMessage(c.data)
		result, attempt := s.Deliver(t.Context(), to, m)
		got := take()
		if result.Status != http.StatusOK || len(got) != 1 {
			t.Fatalf("%s: %+v, %d requests", c.path, result, len(got))
		}
		for label, key := range map[string]ed25519.PublicKey{"webhook": publicOf(tenantSeed), "bot": publicOf(platformSeed)} {
			if err := verifyPublic(got[0], label, key); err != nil {
				t.Errorf("%s: %v", c.path, err)
			}
		}
		if want := httpsig.Digest([]byte(got[0].Body)); got[0].Headers.Get("Content-Digest") != want {
			t.Errorf("%s: the digest is %s, not %s", c.path, got[0].Headers.Get("Content-Digest"), want)
		}
		if agent := got[0].Headers.Get("Signature-Agent"); agent != `bot="https://posthorn.example.com"` {
			t.Errorf("the agent is %s", agent)
		}
		if n := strings.Count(got[0].Headers.Get("Webhook-Signature"), "v1a,"); n != 1 {
			t.Errorf("%s: %d signatures v1a", c.path, n)
		}
		kept := signature.SentHeaders(signature.Wire{Format: signature.Standard}, signature.Message{}, attempt.Signature, signature.Send{})
		for _, name := range []string{"Content-Digest", "Signature-Agent", "Signature-Input", "Signature", "Webhook-Signature"} {
			found := false
			for _, h := range kept {
				found = found || strings.EqualFold(h.Name, name) && h.Value == got[0].Headers.Get(name)
			}
			if !found {
				t.Errorf("%s: the attempt does not have %s: %s", c.path, name, got[0].Headers.Get(name))
			}
		}
	}
}

func TestAnEndpointWithoutPublicSignaturesGetsNone(t *testing.T) {
	t.Parallel()
	address, take := publicReceiver(t)
	to := someDestination(t, address)
	taken := publicDestination(t, address)
	taken.taken, taken.public = true, endpoint.NoPublic
	for _, c := range []struct {
		sender *Sender
		to     *Destination
	}{{newTestSender(t), to}, {publicSender(t), taken}} {
		if r, _ := c.sender.Deliver(t.Context(), c.to, someMessage(`{}`)); r.Status != http.StatusOK {
			t.Fatal(r)
		}
		for _, r := range take() {
			for _, name := range []string{"Content-Digest", "Signature-Agent", "Signature-Input", "Signature"} {
				if value := r.Headers.Get(name); value != "" {
					t.Errorf("%s: %s", name, value)
				}
			}
		}
	}
}

// The key that signs is chosen at the moment of each attempt.
func TestARotatedKeySignsFromItsStart(t *testing.T) {
	t.Parallel()
	address, take := publicReceiver(t)
	s := newTestSender(t)
	to := publicDestination(t, address)
	end := time.Now().Add(time.Hour)
	older := httpsig.NewSigner(tenantSeed, httpsig.Span{ExpiresAt: &end})
	for _, c := range []struct {
		starts time.Time
		signs  [32]byte
	}{
		{time.Now().Add(time.Minute), tenantSeed},
		{time.Now().Add(-time.Second), platformSeed},
	} {
		to.signers = []httpsig.Signer{httpsig.NewSigner(platformSeed, httpsig.Span{StartsAt: c.starts}), older}
		s.Deliver(t.Context(), to, someMessage(`{}`))
		if err := verifyPublic(take()[0], "webhook", publicOf(c.signs)); err != nil {
			t.Error(err)
		}
	}
}

// A verification by GET is signed as the platform too: a filter would reject it otherwise.
func TestAChallengeByGETIsSignedAsThePlatform(t *testing.T) {
	t.Parallel()
	address, take := publicReceiver(t)
	s := publicSender(t)
	to := publicDestination(t, address+"/hook")
	r := s.ask(to, [16]byte{1}, "endpoint.verification", json.RawMessage(`{}`), 1, false)
	s.transports[endpoint.HTTP].verify(t.Context(), to, r, challenge{mode: "challenge_get", text: "abc"})
	got := take()
	if len(got) != 1 || got[0].Method != http.MethodGet {
		t.Fatalf("%+v", got)
	}
	if err := verifyPublic(got[0], "bot", publicOf(platformSeed)); err != nil {
		t.Error(err)
	}
}

// AWS WAF responds to what it challenges with 202.
func TestAChallengeOfAFilterIsNoSuccess(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Waf-Action", "challenge")
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	s := newTestSender(t)
	to := someDestination(t, server.URL)
	result, attempt := s.Deliver(t.Context(), to, someMessage(`{}`))
	if result.Failure != delivery.FailProtocol || result.Status != http.StatusAccepted || !strings.Contains(attempt.Error, "AWS WAF") {
		t.Errorf("%+v: %s", result, attempt.Error)
	}
	if _, detail, verified := s.Check(t.Context(), to); verified || !strings.Contains(detail, "AWS WAF") {
		t.Errorf("verified: %t, %s", verified, detail)
	}
}

// The libraries of Cloudflare for HTTP Message Signatures and for Web Bot Auth.
func TestOfficialLibrariesVerifyEachOfAThousandRequests(t *testing.T) {
	t.Parallel()
	if os.Getenv("POSTHORN_FETCH") == "" {
		need.Missing(t, "make sdks", "It sets POSTHORN_FETCH, fetches the libraries from npm, and runs this test.")
	}
	need.Programs(t, "npm", "node")
	s := publicSender(t)
	address, take := publicReceiver(t)
	for i := range 1000 {
		to := publicDestination(t, fmt.Sprintf("%s/hook/%d%%20?n=%d", address, i, i))
		if r, _ := s.Deliver(t.Context(), to, someMessage(fmt.Sprintf(`{"n":%d}`, i))); r.Status != http.StatusOK {
			t.Fatal(r)
		}
	}
	jwk := func(seed [32]byte) httpsig.JWK { return httpsig.PublicJWK(publicOf(seed), httpsig.Span{}) }
	in, err := json.Marshal(map[string]any{"requests": take(), "tenant": jwk(tenantSeed), "platform": jwk(platformSeed)})
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/verify.mjs")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "verify.mjs"), code, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		command := exec.CommandContext(t.Context(), name, args...)
		command.Dir, command.Stdin = dir, bytes.NewReader(in)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("npm", "install", "--silent", "--no-audit", "--no-fund", "web-bot-auth@0.1.3", "http-message-sig@0.3.0")
	if got, want := run("node", "verify.mjs"), "webhook 1000, bot 1000, web-bot-auth 1000, forged 0"; got != want {
		t.Errorf("they verify %s, not %s", got, want)
	}
}
