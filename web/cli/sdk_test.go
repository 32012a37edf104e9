package cli_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/client"
)

func TestAnEventGoesFromEmitToAVerifiedReceiverInEveryFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, format := range []client.Format{
		"", client.FormatStandard, client.FormatXWebhook, client.FormatTV1,
		client.FormatBodyHex, client.FormatRaw,
	} {
		t.Run("format "+string(format), func(t *testing.T) {
			t.Parallel()
			on := *w
			on.t = t
			c, _ := on.tenant()
			got := make(chan client.Webhook, 10)
			var mu sync.Mutex
			var verifier client.Verifier
			r := receiver(t, func() client.Verifier { mu.Lock(); defer mu.Unlock(); return verifier }, got)
			mu.Lock()
			input := client.EndpointInput{URL: r.URL}
			if format != "" {
				input.Format = &format
			}
			endpoint := must[client.EndpointCreated](t)(c.CreateEndpoint(t.Context(), input))
			verifier = client.Verifier{Format: format, Secrets: []string{"whsec_b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXI=", endpoint.Secret}}
			mu.Unlock()
			eventually(t, "the endpoint has proved itself", func() bool {
				return must[client.Endpoint](t)(c.GetEndpoint(t.Context(), endpoint.ID)).Status == client.EndpointStatusActive
			})
			e := must[client.Emission](t)(client.NewEmission("order.completed", map[string]any{"note": "<ä & b>", "total": 4200}))
			accepted := must[client.Accepted](t)(c.Emit(t.Context(), e))
			webhook := <-got
			if string(webhook.Data) != `{"note":"<ä & b>","total":4200}` || webhook.Type != "order.completed" {
				t.Errorf("received %+v", webhook)
			}
			switch format {
			case client.FormatBodyHex:
			case client.FormatRaw:
				if !strings.HasPrefix(webhook.DeliveryID, "dlv_") || !webhook.Timestamp.IsZero() {
					t.Errorf("received %+v", webhook)
				}
			default:
				if webhook.ID != accepted.ID || !webhook.Timestamp.Equal(accepted.CreatedAt) {
					t.Errorf("received %+v, accepted %+v", webhook, accepted)
				}
			}
		})
	}
}

func TestListsAreWalkedThroughWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _ := w.tenant()
	var events []client.Emission
	for i := range 25 {
		events = append(events, must[client.Emission](t)(client.NewEmission("order.completed", i)))
	}
	results := must[[]client.ItemResult](t)(c.EmitAll(t.Context(), events))
	var want []string
	for _, r := range results {
		want = append(want, *r.ID)
	}
	var got []string
	for e, err := range c.Events(t.Context(), client.ListEventsParams{
		Limit: new(10),
		Order: new(client.ListEventsParamsOrderAsc),
	}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.ID)
	}
	if len(want) != 25 || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	seen := 0
	for range c.Events(t.Context(), client.ListEventsParams{Limit: new(10)}) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("left after %d rows", seen)
	}
	for _, err := range c.Events(t.Context(), client.ListEventsParams{Limit: new(1000)}) {
		if client.Code(err) != "limit_range" {
			t.Errorf("want limit_range, got %v", err)
		}
	}
}

func TestManyEventsGoInAsManyBatchesAsTheyNeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _ := w.tenant()
	var batches atomic.Int32
	w.before = func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/events/batch") {
			batches.Add(1)
		}
		return false
	}
	large := strings.Repeat("x", 200<<10)
	var events []client.Emission
	for i := range 1060 {
		var data any = i
		if i >= 1000 { // 60 of 200 KiB are more than one request holds
			data = large
		}
		events = append(events, must[client.Emission](t)(client.NewEmission("order.completed", data)))
	}
	events[7].Type = "no type"
	results, err := c.EmitAll(t.Context(), events)
	var rejected *client.RejectedError
	if !errors.As(err, &rejected) || rejected.Total != 1060 || len(rejected.Events) != 1 ||
		rejected.Events[0].Index != 7 ||
		rejected.Events[0].Err.Code != "type_malformed" || !strings.Contains(err.Error(), "1 of 1060 events were rejected") {
		t.Errorf("the error is %v", err)
	}
	if text := fmt.Sprintf("%+v", results[7:9]); !strings.HasPrefix(text, "[400 type_malformed: ") || !strings.Contains(text, " 202 evt_") {
		t.Errorf("printed, results are %s", text)
	}
	if len(results) != 1060 || batches.Load() != 3 {
		t.Fatalf("%d results of %d batches", len(results), batches.Load())
	}
	for i, r := range results {
		if refused := r.ID == nil; refused != (i == 7) {
			t.Errorf("event %d: %+v", i, r)
		}
	}
	if code := results[7].Code; code == nil || *code != "type_malformed" {
		t.Errorf("the refused one says %+v", results[7])
	}
}

func TestARefusalIsATypedError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _ := w.tenant()
	_, err := c.CreateEndpoint(t.Context(), client.EndpointInput{URL: "ftp://example.com", TimeoutSeconds: new(99)})
	var e *client.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	var fields []string
	for _, f := range e.Fields {
		fields = append(fields, f.Field)
	}
	if e.Status != 400 || e.Code == "" || e.Detail == "" || fmt.Sprint(fields) != "[timeout_seconds url]" && fmt.Sprint(fields) != "[url timeout_seconds]" ||
		!strings.HasPrefix(e.RequestID, "req_") {
		t.Errorf("got %+v", e)
	}
	if text := err.Error(); !strings.Contains(text, e.Code) || !strings.Contains(text, e.RequestID) {
		t.Errorf("for a log: %s", text)
	}
	if _, err := c.GetEndpoint(t.Context(), "ep_01jd0000000000000000000000"); client.Code(err) != "not_found" {
		t.Errorf("an unknown endpoint: %v", err)
	}
	if _, err := w.client("phk_wrong").GetOwnTenant(t.Context()); client.Code(err) != "key_unknown" {
		t.Errorf("a wrong key: %v", err)
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err := c.GetEndpoint(t.Context(), id); err == nil {
			t.Errorf("%q was sent as an id", id)
		}
	}
	if _, err := c.GetEndpoint(t.Context(), "../tenant"); client.Code(err) != "not_found" && client.Code(err) != "no_such_path" {
		t.Errorf("an id with a slash: %v", err)
	}
}

func TestAPlatformKeyActsWithinATenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.platform()
	made := must[client.TenantCreated](t)(p.CreateTenant(t.Context(), client.TenantInput{Name: "Acme"}))
	within := p.Tenant(made.ID)
	accepted := must[client.Accepted](t)(within.Emit(t.Context(), must[client.Emission](t)(client.NewEmission("order.completed", nil))))
	own := w.client(made.APIKey)
	if e := must[client.EventWithData](t)(own.GetEvent(t.Context(), accepted.ID)); string(e.Data) != "null" {
		t.Errorf("the tenant sees %+v", e)
	}
	if _, err := own.Tenant(made.ID).GetEvent(t.Context(), accepted.ID); client.Code(err) != "platform_key_required" {
		t.Errorf("a tenant's key on a platform's path: %v", err)
	}
}

func TestAnEmissionIsRepeatedAndMakesOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, _ := w.tenant(client.WithRetries(5, time.Second))
	var tries atomic.Int32
	w.before = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		switch tries.Add(1) {
		case 1:
			rw.Header().Set("Retry-After", "1")
			rw.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			rw.WriteHeader(http.StatusBadGateway)
		case 3: // stored, and the response is lost
			w.engine.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	}
	began := time.Now()
	accepted := must[client.Accepted](t)(c.Emit(t.Context(), must[client.Emission](t)(client.NewEmission("order.completed", 1))))
	if spent := time.Since(began); spent < time.Second {
		t.Errorf("came back after %s, before Retry-After", spent)
	}
	var events []string
	for e, err := range c.Events(t.Context(), client.ListEventsParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e.ID)
	}
	if tries.Load() != 4 || len(events) != 1 || events[0] != accepted.ID {
		t.Errorf("%d tries, accepted %s, stored %v", tries.Load(), accepted.ID, events)
	}
}

func TestALongRetryAfterIsLeftToTheCaller(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	s := newServer(t, func(rw http.ResponseWriter, _ *http.Request) {
		tries.Add(1)
		rw.Header().Set("Retry-After", "120")
		rw.WriteHeader(http.StatusTooManyRequests)
	})
	c := must[*client.Client](t)(client.New(s, "key", client.WithRetries(3, time.Second)))
	var e *client.Error
	if _, err := c.GetOwnTenant(t.Context()); !errors.As(err, &e) || e.RetryAfter != 2*time.Minute ||
		tries.Load() != 1 {
		t.Errorf("%d tries, got %v", tries.Load(), err)
	}
}

func TestAServerThatIsAwayIsTriedAgain(t *testing.T) {
	t.Parallel()
	// A port below those that the system gives out, so that no other test takes it before it is used.
	address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
	up := time.AfterFunc(300*time.Millisecond, func() {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Errorf("the port was taken: %v", err)
			return
		}
		s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(rw, `{"id":"ep_1"}`)
		})}
		t.Cleanup(func() { s.Close() })
		_ = s.Serve(l)
	})
	defer up.Stop()
	c := must[*client.Client](t)(client.New("http://"+address, "key", client.WithRetries(100, 50*time.Millisecond)))
	// Not a read. It is repeated all the same, because no connection was established.
	if e, err := c.PauseEndpoint(t.Context(), "ep_1", client.EndpointPauseInput{}); err != nil || e.ID != "ep_1" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestTheKeyGoesNowhereElse(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	elsewhere := newServer(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	s := newServer(t, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, elsewhere, http.StatusTemporaryRedirect)
	})
	c := must[*client.Client](t)(client.New(s, "key"))
	var e *client.Error
	if _, err := c.GetOwnTenant(t.Context()); !errors.As(err, &e) || e.Status != http.StatusTemporaryRedirect ||
		reached.Load() {
		t.Errorf("followed: %t, got %v", reached.Load(), err)
	}
}

func TestAddressesThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "posthorn", "ftp://posthorn.example.com", "https://", "https://key@posthorn.example.com", "https://posthorn.example.com?x=1", "://"} {
		if _, err := client.New(address, "key"); err == nil {
			t.Errorf("%q was taken", address)
		}
	}
	if _, err := client.New("https://posthorn.example.com", " "); err == nil {
		t.Error("no key was taken")
	}
}

func TestWhatMayHaveHappenedIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		call   func(*client.Client) error
		tries  int32
	}{
		{"a read after 503", 503, func(c *client.Client) error { _, err := c.GetEndpoint(t.Context(), "ep_1"); return err }, 4},
		{"a read after 404", 404, func(c *client.Client) error { _, err := c.GetEndpoint(t.Context(), "ep_1"); return err }, 1},
		{"a read after 500", 500, func(c *client.Client) error { _, err := c.GetEndpoint(t.Context(), "ep_1"); return err }, 4},
		{"a change after 500", 500, func(c *client.Client) error {
			_, err := c.PauseEndpoint(t.Context(), "ep_1", client.EndpointPauseInput{})
			return err
		}, 1},
		{"an emission after 500", 500, func(c *client.Client) error { _, err := c.Emit(t.Context(), client.Emission{}); return err }, 4},
		{"a change after 503", 503, func(c *client.Client) error {
			_, err := c.PauseEndpoint(t.Context(), "ep_1", client.EndpointPauseInput{})
			return err
		}, 1},
		{"a change after 429", 429, func(c *client.Client) error {
			_, err := c.PauseEndpoint(t.Context(), "ep_1", client.EndpointPauseInput{})
			return err
		}, 4},
		{"an emission after 504", 504, func(c *client.Client) error { _, err := c.Emit(t.Context(), client.Emission{}); return err }, 4},
		{"a replay after 502", 502, func(c *client.Client) error {
			_, err := c.ReplayDelivery(t.Context(), "dlv_1", client.ReplayInput{})
			return err
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var tries atomic.Int32
			s := newServer(t, func(rw http.ResponseWriter, _ *http.Request) {
				tries.Add(1)
				rw.WriteHeader(c.status)
				_, _ = io.WriteString(rw, "<html>somebody else's page</html>")
			})
			sdk, err := client.New(s, "key", client.WithRetries(3, time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			var e *client.Error
			if err := c.call(sdk); !errors.As(err, &e) || e.Status != c.status || e.Code != "" ||
				!strings.Contains(e.Detail, "somebody else's page") {
				t.Errorf("got %v", err)
			}
			if tries.Load() != c.tries {
				t.Errorf("%d tries, want %d", tries.Load(), c.tries)
			}
		})
	}
}
