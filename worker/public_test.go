package worker

import (
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/settings"
	"posthorn/domain/show"
)

// A key that replaces the others signs the next event, although nobody changed the endpoint.
func TestARotatedKeySignsTheNextEvent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Public = endpoint.BothPublic })
	h.worker(true)
	keys := func() (found []show.SigningKey) {
		h.as(tenant, func(q *sql.Queries) (err error) {
			found, err = endpoints.SigningKeys(t.Context(), q, tenant)
			return err
		})
		return found
	}
	sent := 0
	signs := func(stage string) {
		t.Helper()
		h.emit(tenant, item("order.completed", "", sent))
		sent++
		h.settled(10*time.Second, delivery.Delivered, sent)
		a := r.seen()[sent-1]
		if in := a.header.Get("Signature-Input"); !strings.Contains(in, `keyid="`+keys()[0].Thumbprint()+`"`) {
			t.Errorf("%s: %s", stage, in)
		}
		if n := strings.Count(a.header.Get("webhook-signature"), "v1a,"); n != 1 || a.header.Get("Content-Digest") == "" {
			t.Errorf("%s: %v", stage, a.header)
		}
	}
	signs("the first key")
	h.as(tenant, func(q *sql.Queries) error {
		_, err := endpoints.Editor{Keys: h.ring, By: db.Author{Kind: "command"}}.RotateSigningKeys(t.Context(), q, tenant, 0)
		return err
	})
	signs("after a rotation")
}

// The platform's signature begins without a restart.
func TestThePlatformSignsAsABotWhenItIsTurnedOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	h.endpoint(tenant, r.URL, nil)
	change := accounts.PlatformChange{Texts: map[string]string{settings.BotSignature: "on"}}
	if _, err := accounts.ChangePlatform(t.Context(), h.db, change, db.Author{Kind: "command"}); err != nil {
		t.Fatal(err)
	}
	h.worker(true)
	h.emit(tenant, item("order.completed", "", 0))
	h.settled(10*time.Second, delivery.Delivered, 1)
	a := r.seen()[0]
	if a.header.Get("Signature-Agent") != `bot="https://posthorn.example.com"` || !strings.Contains(a.header.Get("Signature-Input"), `tag="web-bot-auth"`) {
		t.Errorf("%v", a.header)
	}
	if n := h.count("SELECT count(*) FROM signing_keys WHERE tenant_id = $1", endpoints.Platform); n != 1 {
		t.Errorf("%d keys", n)
	}
}
