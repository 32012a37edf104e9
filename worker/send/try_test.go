package send

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posthorn/db/endpoints"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/domain/transform"
)

// shown is the state of each step, in order.
func shown(steps []show.ConnectionStep) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.Name+" "+string(s.State))
	}
	return strings.Join(out, ", ")
}

func TestEachStepOfAConnectionTestHasItsTimeAndItsError(t *testing.T) {
	t.Parallel()
	w := newTokenWorld(t)
	m := newMutual(t, func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusNoContent) })
	refusing := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(refusing.Close)
	names := newNameServer(t)
	for name, address := range map[string]string{"here.test.example": "127.0.0.1", "private.test.example": "10.0.0.1"} {
		names.set(name, address)
	}
	at := func(host, url string) string {
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://"))
		return url[:strings.Index(url, "://")+3] + net.JoinHostPort(host, port)
	}
	broken := w.auth()
	broken.Secret = "canary-secret"
	own := clientOf(t, m.clients, "a")
	own.CA = pemOf(m.authority)
	closed := "http://127.0.0.1:" + strconv.Itoa(unusedPort(t))
	for _, c := range []struct {
		name, url string
		auth      *endpoint.Auth
		own       *endpoint.ClientTLS
		want      string
		says      string
	}{
		{"works", at("here.test.example", w.receiver.URL), w.auth(), nil, "dns ok, connect ok, tls skipped, token ok, request ok", "returned 200"},
		{"by its address", w.receiver.URL, w.auth(), nil, "dns skipped, connect ok, tls skipped, token ok, request ok", "returned 200"},
		{"no such host", "http://nowhere.test.example", nil, nil, "dns failed, connect skipped, tls skipped, token skipped, request skipped", "No such host."},
		{"a private address", "https://private.test.example", nil, nil, "dns failed, connect skipped, tls skipped, token skipped, request skipped", "Blocked address."},
		{"a literal one", "https://10.0.0.1", nil, nil, "dns skipped, connect failed, tls skipped, token skipped, request skipped", "Blocked address."},
		{"nothing listens", closed, nil, nil, "dns skipped, connect failed, tls skipped, token skipped, request skipped", "Connection refused."},
		{"an unknown authority", m.URL, nil, nil, "dns skipped, connect ok, tls failed, token skipped, request skipped", "Invalid certificate"},
		{"its own authority", m.URL, nil, own, "dns skipped, connect ok, tls ok, token skipped, request ok", "returned 204"},
		{"no client certificate", m.URL, nil, &endpoint.ClientTLS{CA: own.CA}, "dns skipped, connect ok, tls ok, token skipped, request failed", "requires a client certificate"},
		{"no token", w.receiver.URL, broken, nil, "dns skipped, connect ok, tls skipped, token failed, request skipped", "The token endpoint returned 4"},
		{"an unwanted token", refusing.URL, w.auth(), nil, "dns skipped, connect ok, tls skipped, token ok, request failed", "returned 403"},
		{"no credentials", w.receiver.URL, nil, nil, "dns skipped, connect ok, tls skipped, token skipped, request failed", "returned 401"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := endpoint.ReadDefaults(50, nil, nil).Settings
			s.URL, s.Auth, s.TLS = c.url, c.auth, c.own
			tester := NewTester(loopback(t))
			tester.guard.resolver = names.resolver()
			steps, err := tester.Test(t.Context(), endpoints.Facts{Settings: s})
			if err != nil || shown(steps) != c.want {
				t.Fatalf("%v: %s", err, shown(steps))
			}
			var said []string
			for _, step := range steps {
				said = append(said, step.Detail)
				if (step.State == show.StepSkipped) != (step.Took == 0) || step.State == show.StepFailed && step.Detail == "" || step.Label() == "" {
					t.Errorf("%+v", step)
				}
			}
			if all := fmt.Sprint(said); !strings.Contains(all, c.says) || strings.Contains(all, "canary") || strings.Contains(all, "127.0.0.1") {
				t.Errorf("says %s", all)
			}
		})
	}
}

func unusedPort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func TestAConnectionTestReachesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	names := newNameServer(t)
	names.set("private.test.example", "203.0.113.1", "10.0.0.1")
	tester := NewTester(egress.Policy{})
	tester.guard.resolver = names.resolver()
	for _, host := range []string{"127.0.0.1", "[::1]", "10.1.2.3", "169.254.169.254", "[::ffff:10.0.0.1]", "private.test.example"} {
		s := endpoint.ReadDefaults(50, nil, nil).Settings
		s.URL = "https://" + host + "/"
		steps, err := tester.Test(t.Context(), endpoints.Facts{Settings: s})
		if err != nil || !strings.Contains(fmt.Sprint(steps), "Blocked address") {
			t.Errorf("%s: %v %+v", host, err, steps)
		}
	}
}

// The test event has each signature that a delivery to the endpoint has, and each holds.
func TestAConnectionTestIsSignedAsDeliveriesAre(t *testing.T) {
	t.Parallel()
	address, take := publicReceiver(t)
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	s.URL, s.Public = address+"/hook", endpoint.BothPublic
	s.Shape = &signature.Shape{AlsoSign: &signature.AlsoSign{Format: signature.TV1}}
	f := endpoints.Facts{
		Endpoint: "ep_1",
		Settings: s,
		Secrets:  []endpoints.Secret{{Text: "whsec_bmV3ZXN0LXNlY3JldC1vZi0zMi1ieXRlcy0wMDAwMDE="}, {Text: "whsec_b2xkZXN0LXNlY3JldC1vZi0zMi1ieXRlcy0wMDAwMDE="}},
		Signers:  []httpsig.Signer{httpsig.NewSigner(tenantSeed, httpsig.Span{})},
		Bot:      httpsig.NewBot("https://posthorn.example.com", []httpsig.Signer{httpsig.NewSigner(platformSeed, httpsig.Span{})}),
	}
	steps, err := NewTester(loopback(t)).Test(t.Context(), f)
	if err != nil || !show.StepsOK(steps) {
		t.Fatal(err, steps)
	}
	sender := newTestSender(t)
	sender.SetBot(f.Bot)
	d, err := newDestination(f, sender.transports[endpoint.HTTP])
	if err != nil {
		t.Fatal(err)
	}
	if r, a := sender.Deliver(t.Context(), d, someMessage(`{}`)); r.Status != http.StatusOK {
		t.Fatal(r, a.Error)
	}
	got := take()
	if len(got) != 2 {
		t.Fatalf("%d requests", len(got))
	}
	tested, delivered := got[0], got[1]
	if a, b := slices.Sorted(maps.Keys(tested.Headers)), slices.Sorted(maps.Keys(delivered.Headers)); !slices.Equal(a, b) {
		t.Errorf("the test has the headers\n%v, a delivery\n%v", a, b)
	}
	for label, key := range map[string][32]byte{"webhook": tenantSeed, "bot": platformSeed} {
		if err := verifyPublic(tested, label, publicOf(key)); err != nil {
			t.Error(err)
		}
	}
	signatures := strings.Fields(tested.Headers.Get("webhook-signature"))
	if len(signatures) != 3 || len(strings.Fields(delivered.Headers.Get("webhook-signature"))) != 3 {
		t.Errorf("two secrets and a public key sign: %v", signatures)
	}
}

// A receiver that wants its own JSON accepts no other: the test sends what deliveries will be.
func TestAConnectionTestSendsWhatTheTransformationMakes(t *testing.T) {
	t.Parallel()
	var got map[string]any
	pager := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, req *http.Request) {
		got = nil
		if json.NewDecoder(req.Body).Decode(&got) != nil || got["routing_key"] != "r0uting" {
			out.WriteHeader(http.StatusBadRequest)
			return
		}
		out.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(pager.Close)
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	s.URL = pager.URL
	test := func(want string) {
		t.Helper()
		steps, err := NewTester(loopback(t)).Test(t.Context(), endpoints.Facts{Settings: s})
		if err != nil || !strings.HasSuffix(shown(steps), want) {
			t.Errorf("%v: %s", err, shown(steps))
		}
	}
	test("request failed") // the event as it is
	var err error
	if s.Transformation, err = transform.Parse([]byte(`{"preset":"pagerduty","variables":{"routing_key":"r0uting"}}`)); err != nil {
		t.Fatal(err)
	}
	test("request ok")
	if got["event_action"] != "resolve" {
		t.Errorf("a test opens an incident: %v", got)
	}
}
