package mailbox_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/handlers/mailbox"
	"posthorn/tools/dbtest"
	"posthorn/tools/webtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

type world struct {
	*webtest.World
	t      *testing.T
	db     *db.DB
	links  accounts.Links
	engine http.Handler
	tenant id.UUID
}

const cronSecret = "canary-cron-secret-0123456789"

func newWorld(t *testing.T) *world {
	t.Helper()
	const base = "http://posthorn.example"
	shared := webtest.New(t)
	w := &world{World: shared, t: t, db: shared.DB, links: accounts.Links{BaseURL: base, Keys: shared.Ring}}
	w.engine = webtest.Serve(w.Config(time.Now, base), mailbox.Routes(mailbox.Deps{DB: w.db, Keys: w.Ring, CronSecret: cronSecret}))
	w.tenant, _ = w.Tenant("Acme")
	if status, _ := w.ask("POST", w.link(notice.Digest), url.Values{"confirm": {"1"}}); status != http.StatusOK {
		t.Fatalf("the contact could not agree: %d", status)
	}
	return w
}

func TestAContactAgreesByAPersonsPressAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.links.Unsubscribe(notice.Subscription{Tenant: w.tenant, Recipient: "new@acme.example", Kind: notice.SecretRotated})
	for range 2 { // a program that opens the link agrees to nothing
		if status, body := w.ask("GET", link, nil); status != http.StatusOK || !strings.Contains(body, "Receive notices") ||
			strings.Contains(body, "Unsubscribe from these emails") {
			t.Fatalf("%d %s", status, body)
		}
	}
	if w.wanted(notice.SecretRotated, "new@acme.example") {
		t.Error("a contact that did not agree gets notices")
	}
	if status, body := w.ask("POST", link, url.Values{"confirm": {"1"}}); status != http.StatusOK || !strings.Contains(body, "receive these notices") ||
		strings.Contains(body, "Unsubscribe from these emails") { // a second press at the same place would undo the first
		t.Errorf("%d %s", status, body)
	}
	if !w.wanted(notice.SecretRotated, "new@acme.example") || w.wanted(notice.SecretRotated, "other@acme.example") {
		t.Error("the contact that agreed gets no notices, or another one does")
	}
	if status, body := w.ask("GET", link, nil); status != http.StatusOK || !strings.Contains(body, "Unsubscribe from these emails") {
		t.Errorf("%d %s", status, body)
	}
}

// ask sends a form, or a GET without one.
func (w *world) ask(method, target string, form url.Values, header ...string) (int, string) {
	w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, target, body)
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	w.engine.ServeHTTP(rec, r)
	return rec.Code, rec.Body.String()
}

// wanted says which mails of the tenant a contact gets.
func (w *world) wanted(kind notice.Kind, contact string) bool {
	w.t.Helper()
	found := false
	if err := w.db.Worker(w.t.Context(), func(q *db.Tx) error {
		to, err := accounts.NoticeRecipients(w.t.Context(), q, w.tenant, kind, []string{contact})
		found = len(to) == 1 && !to[0].Unconfirmed
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return found
}

const contact = "Ops@Acme.example"

func (w *world) link(kind notice.Kind) string {
	return w.links.Unsubscribe(notice.Subscription{
		Tenant:    w.tenant,
		Recipient: notice.AddressRecipient(contact),
		Kind:      kind,
	})
}

func TestOpeningTheLinkStopsNothingAndTheOneClickDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.link(notice.Digest)
	if status, body := w.ask("GET", link, nil); status != http.StatusOK || !strings.Contains(body, "Unsubscribe from these emails") ||
		!strings.Contains(body, "Acme") {
		t.Fatalf("%d %s", status, body)
	}
	if !w.wanted(notice.Digest, contact) {
		t.Fatal("a program that opened the link has stopped the mails")
	}
	// As a mail provider sends it: no cookie, no origin, no person.
	if status, body := w.ask("POST", link, url.Values{"List-Unsubscribe": {"One-Click"}}); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if w.wanted(notice.Digest, contact) || !w.wanted(notice.EndpointDisabled, contact) {
		t.Error("this kind stops, and no other")
	}
	if status, body := w.ask("POST", link, url.Values{"List-Unsubscribe": {"One-Click"}}); status != http.StatusOK || strings.Contains(body, "Unsubscribe from these emails") {
		t.Errorf("again: %d %s", status, body)
	}
	n := 0
	if err := w.db.Tenant(t.Context(), w.tenant, func(q *db.Tx) error {
		page, err := db.TenantAudit(t.Context(), q, w.tenant, "notice_preferences.changed", show.Range{Limit: 100})
		n = len(page.Rows)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if n != 2 { // the contact agreed before
		t.Errorf("%d entries in the audit log for one change", n-1)
	}
}

func TestAOneClickMayComeAsMultipart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.link(notice.Digest)
	r := httptest.NewRequestWithContext(t.Context(), "POST", link, strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"List-Unsubscribe\"\r\n\r\nOne-Click\r\n--b--\r\n"))
	r.Header.Set("Content-Type", `multipart/form-data; boundary=b`)
	rec := httptest.NewRecorder()
	w.engine.ServeHTTP(rec, r)
	if rec.Code != http.StatusOK || w.wanted(notice.Digest, contact) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

func TestHoldersOfAMailSelectAmongAllKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.link(notice.Digest)
	if status, body := w.ask("POST", link, url.Values{"save": {"1"}, "kind": {"delivery.failed", "endpoint.disabled", "junk"}}); status != http.StatusOK || !strings.Contains(body, "Saved.") {
		t.Fatalf("%d %s", status, body)
	}
	for kind, want := range map[notice.Kind]bool{
		notice.DeliveryFailed:   true,
		notice.EndpointDisabled: true,
		notice.Digest:           false,
		notice.EndpointWarning:  false,
		notice.KeyCreated:       false,
	} {
		if got := w.wanted(kind, contact); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

func TestALinkThatWasNotSignedHereOpensNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.link(notice.Digest)
	other := w.links.Keys.Token("another purpose", notice.Subscription{Tenant: w.tenant, Recipient: "a@acme.example", Kind: notice.Digest}.Encode())
	for name, forged := range map[string]string{
		"cut short":           link[:len(link)-3],
		"junk":                "/unsubscribe/junk",
		"for another purpose": "/unsubscribe/" + other,
		"signed junk":         "/unsubscribe/" + w.links.Keys.Token(accounts.UnsubscribePurpose, []byte("junk")),
	} {
		for _, method := range []string{"GET", "POST"} {
			if status, body := w.ask(method, forged, url.Values{}); status != http.StatusNotFound ||
				!strings.Contains(body, "link_unknown") {
				t.Errorf("%s, %s: %d %s", name, method, status, body)
			}
		}
	}
	// A person who left, and a deleted tenant: the page says so and changes nothing.
	for name, s := range map[string]notice.Subscription{
		"a person who left": {Tenant: w.tenant, Recipient: notice.PersonRecipient(db.NewID()), Kind: notice.Digest},
		"a tenant no more":  {Tenant: db.NewID(), Recipient: "a@acme.example", Kind: notice.Digest},
	} {
		if status, body := w.ask("GET", w.links.Unsubscribe(s), nil); status != http.StatusOK || !strings.Contains(body, "no longer receive notices about this tenant") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestAnOutsideSchedulerNeedsTheSecretForSweeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, header := range []string{"", "Bearer", "Bearer wrong", "Basic " + cronSecret, "Bearer " + cronSecret[:len(cronSecret)-1], "Bearer " + cronSecret + "x"} {
		status, body := w.ask("POST", "/internal/sweep", nil, "Authorization", header, "Accept", "*/*")
		if status != http.StatusUnauthorized || !strings.Contains(body, "cron_secret_wrong") || strings.Contains(body, "canary") {
			t.Errorf("%q: %d %s", header, status, body)
		}
	}
	sweep := func() bool {
		did, err := w.db.Sweep(t.Context(), endpoints.SweepDigests, time.Hour, func(id.UUID, string) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return did
	}
	sweep()
	if sweep() {
		t.Fatal("a sweep is due at once again")
	}
	if status, body := w.ask("POST", "/internal/sweep", nil, "Authorization", "Bearer "+cronSecret); status != http.StatusAccepted || !strings.Contains(body, "digests") {
		t.Errorf("%d %s", status, body)
	}
	if !sweep() {
		t.Error("the sweep that was asked for is not due")
	}
}
