package worker

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/feeds"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/tools/dbtest"
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

// A consumer of a feed verifies its events with the code of a receiver, so they have the same signatures.
func TestAnEventOfAFeedHasTheSignaturesOfADelivery(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	r := newReceiver(t, nil)
	tenant := h.tenant()
	signed := func(s *endpoint.Settings) {
		s.Public = endpoint.V1a
		s.Shape = &signature.Shape{AlsoSign: &signature.AlsoSign{Format: signature.BodyHex, Prefix: "Old", OwnSecret: true}}
		s.AlsoSecret = "an-older-secret-of-32-characters"
	}
	h.endpoint(tenant, r.URL, signed)
	ended := h.endpoint(tenant, endpoint.FeedURL, func(s *endpoint.Settings) {
		signed(s)
		s.Kind, s.Shape.AlsoSign.Until = endpoint.Feed, new(time.Now().Add(-time.Minute))
	})
	pulled := h.endpoint(tenant, endpoint.FeedURL, func(s *endpoint.Settings) {
		signed(s)
		s.Kind = endpoint.Feed
	})
	h.worker(true)
	h.emit(tenant, item("order.completed", "", 0))
	h.settled(10*time.Second, delivery.Delivered, 1)
	sent := r.seen()[0].header
	read := func(of id.UUID) http.Header {
		t.Helper()
		var p feeds.Page
		dbtest.Eventually(t, time.Minute, "the event to be in the feed", func() bool {
			var err error
			p, err = feeds.Read(t.Context(), h.db, h.ring, tenant, of, feeds.Options{Start: feed.Start{Oldest: true}, Limit: 1, Now: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			return len(p.Events) == 1
		})
		head := http.Header{}
		for _, one := range p.Events[0].Headers {
			head.Set(one.Name, one.Value)
		}
		return head
	}
	got := read(pulled)
	for name := range got {
		if sent.Get(name) == "" {
			t.Errorf("the feed has %s, and the request did not", name)
		}
	}
	for _, name := range []string{"Webhook-Signature", "X-Old-Signature"} {
		if (got.Get(name) == "") != (sent.Get(name) == "") || sent.Get(name) == "" {
			t.Errorf("%s: %q in the feed, %q in the request", name, got.Get(name), sent.Get(name))
		}
	}
	for _, of := range []http.Header{got, sent} {
		if s := of.Get("Webhook-Signature"); strings.Count(s, "v1,") != 1 || strings.Count(s, "v1a,") != 1 {
			t.Errorf("webhook-signature: %s", s)
		}
	}
	if head := read(ended); head.Get("X-Old-Signature") != "" {
		t.Errorf("a second signature that has ended: %v", head)
	}
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
