package links_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/emit"
	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/db/seal"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/event"
	"posthorn/domain/id"
	"posthorn/handlers/links"
	"posthorn/tools/dbtest"
	"posthorn/tools/webtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

const base = webtest.Base

type world struct {
	*webtest.World
	commit *emit.Committer
	now    time.Time // of the limits
	engine http.Handler
	links  queue.Links
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: webtest.New(t), now: time.Now()}
	w.commit = w.Committer()
	w.links = queue.Links{BaseURL: base, Keys: w.Ring}
	w.engine = webtest.Serve(w.Config(time.Now, base), links.Routes(links.Deps{DB: w.DB, Keys: w.Ring, Now: func() time.Time { return w.now }}))
	return w
}

// delivery emits an event of a tenant with one endpoint, which no worker serves.
func (w *world) delivery(tenant id.UUID, e event.Emission) (dlv, ev id.UUID) {
	w.T.Helper()
	s := endpoint.ReadDefaults(50, nil, nil).Settings
	s.URL = "https://hooks.example.com/in"
	secret, err := endpoint.NewSecret(s.Format, "hmac", [32]byte{1})
	if err != nil {
		w.T.Fatal(err)
	}
	var ep id.UUID
	if err := w.DB.Tenant(w.T.Context(), tenant, func(q *db.Tx) error {
		made, err := endpoints.Create(w.T.Context(), q, w.Ring, tenant, endpoints.New{Settings: s, Secret: secret, Limit: 50})
		ep = made.ID
		return err
	}); err != nil {
		w.T.Fatal(err)
	}
	w.SetStatus(ep.String(), "active")
	e.Type = "order.paid"
	r := w.commit.Emit(w.T.Context(), tenant, []emit.Item{{Emission: e}})[0]
	if r.Err != nil {
		w.T.Fatal(r.Err)
	}
	w.Connection(func(c *pgx.Conn) error {
		return c.QueryRow(w.T.Context(), "SELECT id FROM deliveries WHERE event_id = $1 AND endpoint_id = $2", r.ID.String(), ep.String()).Scan((*[16]byte)(&dlv))
	})
	return dlv, r.ID
}

func (w *world) do(method, link string) *httptest.ResponseRecorder {
	w.T.Helper()
	r := httptest.NewRequestWithContext(w.T.Context(), method, link, nil)
	res := httptest.NewRecorder()
	w.engine.ServeHTTP(res, r)
	return res
}

// opens checks the outcome of a link; code is empty where it opens.
func (w *world) opens(what, link, code string) {
	w.T.Helper()
	res := w.do(http.MethodGet, link)
	if code == "" && res.Code != http.StatusOK || code != "" && !strings.Contains(res.Body.String(), `"`+code+`"`) {
		w.T.Errorf("%s: %d %s, want %q", what, res.Code, res.Body, code)
	}
}

// TestALinkOpensTheDataAsItWasEmitted: byte for byte, and text as the text itself, without a key, a cookie, or a copy
// on the way; and a browser shows nothing of it as a page of this server.
func TestALinkOpensTheDataAsItWasEmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.Tenant("Acme")
	for _, c := range []struct{ data, contentType, body, as string }{
		{`{"b": 1.50,  "a":"ü\u0041","a":2}`, "", `{"b": 1.50,  "a":"ü\u0041","a":2}`, "application/json"},
		{`"<script>alert(1)</script>"`, "text/html", "<script>alert(1)</script>", "text/html"},
	} {
		dlv, _ := w.delivery(tenant, event.Emission{Data: []byte(c.data), ContentType: c.contentType})
		link := w.links.Of(tenant, dlv)
		res := w.do(http.MethodGet, link)
		if res.Code != http.StatusOK || res.Body.String() != c.body || !strings.HasPrefix(res.Header().Get("Content-Type"), c.as) {
			t.Errorf("%d %s %s", res.Code, res.Header().Get("Content-Type"), res.Body)
		}
		head := w.do(http.MethodHead, link)
		if head.Code != http.StatusOK || head.Header().Get("Content-Type") != res.Header().Get("Content-Type") {
			t.Errorf("HEAD: %d %v", head.Code, head.Header())
		}
		for name, want := range map[string]string{
			"Cache-Control":           "no-store",
			"Content-Disposition":     "attachment",
			"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
			"Referrer-Policy":         "no-referrer",
			"Set-Cookie":              "",
			"X-Content-Type-Options":  "nosniff",
		} {
			if got := res.Header().Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if got := w.do(method, link); got.Code == http.StatusOK || strings.Contains(got.Body.String(), c.body) {
				t.Errorf("%s: %d", method, got.Code)
			}
		}
	}
}

// TestNoOtherTokenOpensAnything: not one that was forged, cut, prolonged, made for something else, or signed for
// another tenant's delivery. All of them get the same response, and the database is not asked.
func TestNoOtherTokenOpensAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.Tenant("Acme")
	other, _ := w.Tenant("Other")
	dlv, ev := w.delivery(tenant, event.Emission{Data: []byte(`{"secret":"of Acme"}`)})
	link := w.links.Of(tenant, dlv)
	w.opens("the link itself", link, "")
	token := strings.TrimPrefix(link, base+delivery.LinkPath)
	text, tag, _ := strings.Cut(token, ".")
	strange, err := seal.NewRing(seal.Generate([32]byte{9}))
	if err != nil {
		t.Fatal(err)
	}
	of := delivery.Link{Tenant: tenant, Delivery: dlv}
	flipped := []byte(tag)
	flipped[3] ^= 1
	var want string
	for name, forged := range map[string]string{
		"another master key":   strange.Token(delivery.LinkPurpose, of.Text()),
		"another purpose":      w.Ring.Token("unsubscribe", of.Text()),
		"an unsigned text":     text,
		"an empty signature":   text + ".",
		"a cut signature":      token[:len(token)-1],
		"a longer signature":   token + "AA",
		"a changed signature":  text + "." + string(flipped),
		"a cut text":           text[:len(text)-2] + "." + tag,
		"another tenant":       base64.RawURLEncoding.EncodeToString(delivery.Link{Tenant: other, Delivery: dlv}.Text()) + "." + tag,
		"the example":          strings.TrimPrefix(w.links.Example(), base+delivery.LinkPath),
		"a signed other text":  w.Ring.Token(delivery.LinkPurpose, append(of.Text(), 0)),
		"an id":                id.Delivery.Format(dlv),
		"nothing that is text": "%00%ff",
	} {
		res := w.do(http.MethodGet, base+delivery.LinkPath+forged)
		body := res.Body.String()
		if at := strings.Index(body, `"request_id"`); at > 0 {
			body = body[:at]
		}
		if want == "" {
			want = body
		}
		if res.Code != http.StatusNotFound || !strings.Contains(body, `"event_link_unknown"`) || body != want {
			t.Errorf("%s: %d %s", name, res.Code, res.Body)
		}
	}
	// A signed text that names what is not there, which nobody but Posthorn could write.
	w.opens("a delivery under another tenant", w.links.Of(other, dlv), "event_link_ended")
	w.opens("an event as a delivery", w.links.Of(tenant, db.NewIDWithin(ev, 9)), "event_link_ended")
	w.opens("an unknown delivery", w.links.Of(tenant, db.NewID()), "event_link_ended")
}

// TestALinkEndsWithItsDelivery: an hour after it was delivered or failed, and at once if it was canceled, expired or
// expunged.
func TestALinkEndsWithItsDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.Tenant("Acme")
	dlv, ev := w.delivery(tenant, event.Emission{Data: []byte(`{}`)})
	link := w.links.Of(tenant, dlv)
	for _, c := range []struct {
		what   string
		status delivery.Status
		reason delivery.Reason
		ago    string
		code   string
	}{
		{"pending for days", delivery.Pending, delivery.None, "", ""},
		{"retried for days", delivery.Retrying, delivery.None, "", ""},
		{"delivered lately", delivery.Delivered, delivery.None, "59 minutes", ""},
		{"delivered long ago", delivery.Delivered, delivery.None, "61 minutes", "event_link_ended"},
		{"failed lately", delivery.Failed, delivery.Exhausted, "59 minutes", ""},
		{"failed long ago", delivery.Failed, delivery.Exhausted, "61 minutes", "event_link_ended"},
		{"canceled", delivery.Canceled, delivery.None, "1 second", "event_link_canceled"},
		{"of a deleted endpoint", delivery.Canceled, delivery.EndpointDeleted, "1 second", "event_link_canceled"},
		{"expired", delivery.Canceled, delivery.PastExpiry, "1 second", "event_link_canceled"},
	} {
		w.SQL("UPDATE deliveries SET status = $2, reason = $3, settled_at = now() - nullif($4, '')::interval WHERE id = $1", dlv.String(), int(c.status), int(c.reason), c.ago)
		w.opens(c.what, link, c.code)
	}
	w.SQL("UPDATE deliveries SET status = 2, reason = 0, settled_at = now() WHERE id = $1", dlv.String())
	if err := w.DB.Tenant(t.Context(), tenant, func(q *db.Tx) error {
		_, err := deliveries.ExpungeEvent(t.Context(), q, tenant, ev, "test", db.Author{Kind: "command"})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.opens("expunged", link, "event_link_canceled")

	dlv, _ = w.delivery(tenant, event.Emission{Data: []byte(`{}`)})
	link = w.links.Of(tenant, dlv)
	w.SQL("UPDATE tenants SET state = 'suspended' WHERE id = $1", tenant.String())
	w.opens("of a suspended tenant, which is read as before", link, "")
	w.SQL("UPDATE tenants SET state = 'deleted' WHERE id = $1", tenant.String())
	w.opens("of a deleted tenant", link, "event_link_ended")
}

// TestALinkOutlivesANewMasterKey: as long as the old key is still in the ring.
func TestALinkOutlivesANewMasterKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.Tenant("Acme")
	dlv, _ := w.delivery(tenant, event.Emission{Data: []byte(`{}`)})
	link := w.links.Of(tenant, dlv)
	if again := w.links.Of(tenant, dlv); again != link {
		t.Errorf("the same delivery has the links %s and %s", link, again)
	}
	rotated, err := seal.NewRing(seal.Generate([32]byte{8}) + "," + seal.Generate([32]byte{7}))
	if err != nil {
		t.Fatal(err)
	}
	w.engine = webtest.Serve(w.Config(time.Now, base), links.Routes(links.Deps{DB: w.DB, Keys: rotated}))
	w.opens("a link of before", link, "")
	w.opens("a link of after", queue.Links{BaseURL: base, Keys: rotated}.Of(tenant, dlv), "")
}

// TestALinkOpensOnlySoOften: many requests with one link are rejected, and keep no other link.
func TestALinkOpensOnlySoOften(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tenant, _ := w.Tenant("Acme")
	one, _ := w.delivery(tenant, event.Emission{Data: []byte(`1`)})
	two, _ := w.delivery(tenant, event.Emission{Data: []byte(`2`)})
	limited := 0
	for range 60 {
		if w.do(http.MethodGet, w.links.Of(tenant, one)).Code == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 5 || limited > 15 {
		t.Errorf("%d of 60 were rejected", limited)
	}
	w.opens("the same", w.links.Of(tenant, one), "event_link_busy")
	w.opens("another", w.links.Of(tenant, two), "")
	w.now = w.now.Add(time.Second)
	w.opens("the same, later", w.links.Of(tenant, one), "")
}
