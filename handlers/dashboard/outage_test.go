package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"posthorn/domain/access"
	"posthorn/handlers"
)

// A page that can't be read becomes an error page, even when the time of the request is over.
func TestErrorPagesNeedNoDatabase(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*testing.T, *world){
		"sessions can't be read":         func(t *testing.T, w *world) { hold(t, w, "sessions") },
		"the page can't be read":         func(t *testing.T, w *world) { hold(t, w, "endpoints") },
		"the shell can't be read either": func(t *testing.T, w *world) { hold(t, w, "endpoints", "platform", "notices") },
		"the database is away":           func(_ *testing.T, w *world) { w.db.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tn := w.tenant("Acme")
			member := tn.of[access.Owner]
			if got := member.get(tn.path + "/endpoints"); got.Status != http.StatusOK {
				t.Fatalf("before: %d", got.Status)
			}
			fail(t, w)
			began := time.Now()
			got := member.get(tn.path + "/endpoints")
			if took := time.Since(began); took > handlers.DefaultTimeout+3*time.Second {
				t.Errorf("the page took %v", took)
			}
			body := got.Body
			if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || !strings.Contains(body, "</html>") {
				t.Errorf("%d %.300s", got.Status, body)
			}
			if strings.Contains(w.log.String(), "not rendered") {
				t.Error(w.log.String())
			}
		})
	}
}

// A form whose page fails for a moment is sent again with one button, unless it has a secret.
func TestAFormThatFailedForAMomentIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*testing.T, *world){
		"the form was read":    func(t *testing.T, w *world) { hold(t, w, "event_types") },
		"the database is away": func(_ *testing.T, w *world) { w.db.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tn := w.tenant("Acme")
			owner, path := tn.of[access.Owner], tn.path+"/event-types"
			fail(t, w)
			form := url.Values{"name": {"order.paid"}, "description": {`Two words, "quoted"`}, "schema_check": {"off"}, "more": {"1", "2"}}
			owner.post(path, form).want(http.StatusServiceUnavailable, `action="`+path+`"`, "Send again",
				`name="name" value="order.paid"`, `value="Two words, &#34;quoted&#34;"`, `name="more" value="1"`, `name="more" value="2"`)
			form.Set("client_secret", "of-the-provider")
			if got := owner.post(path, form); strings.Contains(got.Body, "Send again") || strings.Contains(got.Body, "of-the-provider") {
				t.Error("the page holds a secret")
			}
		})
	}
}

// hold locks tables for everybody else until the test ends.
func hold(t *testing.T, w *world, tables ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), w.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	if _, err := c.Exec(t.Context(), "SET search_path = posthorn; BEGIN; LOCK TABLE "+strings.Join(tables, ", ")); err != nil {
		t.Fatal(err)
	}
}
