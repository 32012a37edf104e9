package worker

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
)

// A check asks the real receiver with a request that one secret alone signs, and is no delivery.
func TestACheckShowsWhetherAReceiverAcceptsOneSecretAlone(t *testing.T) {
	t.Parallel()
	for _, format := range []signature.Format{signature.Standard, signature.XWebhook} {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			var known atomic.Pointer[string] // the secret that the receiver has
			r := newReceiver(t, func(a arrival) int {
				if signedBy(format, a, *known.Load()) {
					return http.StatusNoContent
				}
				return http.StatusUnauthorized
			})
			tenant := h.tenant()
			ep := h.endpoint(tenant, r.URL, func(s *endpoint.Settings) { s.Format = format })
			old := h.newestSecret(tenant, ep)
			known.Store(&old)
			h.as(tenant, func(q *sql.Queries) error {
				_, err := endpoints.RotateSecret(t.Context(), q, h.ring, tenant, ep, endpoints.Rotation{Overlap: 3600, Choose: freshSecret})
				return err
			})
			fresh := h.newestSecret(tenant, ep)
			h.worker(true)
			by := endpoints.Editor{Keys: h.ring, By: db.Author{Kind: "key", ID: "key_1"}}
			secrets := func() (list []show.Secret) {
				h.as(tenant, func(q *sql.Queries) (err error) {
					list, err = endpoints.ListSecrets(t.Context(), q, tenant, ep)
					return err
				})
				return list
			}
			checked := func(of id.UUID) *show.SecretCheck {
				h.as(tenant, func(q *sql.Queries) error {
					_, err := by.CheckSecret(t.Context(), q, tenant, ep, of)
					return err
				})
				var check *show.SecretCheck
				eventually(t, 10*time.Second, "the check ends", func() bool {
					for _, s := range secrets() {
						if s.ID == of {
							check = s.Check
						}
					}
					return check != nil && check.State != endpoint.CheckPending
				})
				return check
			}
			newest := secrets()[0].ID
			if c := checked(newest); c.State != endpoint.CheckRejected || c.Status != 401 || !strings.Contains(c.Detail, "401") {
				t.Errorf("a receiver without the new secret: %+v", c)
			}
			known.Store(&fresh)
			if c := checked(newest); c.State != endpoint.CheckAccepted || c.Status != 204 || c.Detail != "" {
				t.Errorf("a receiver with the new secret: %+v", c)
			}
			for _, a := range r.seen() {
				if !signedBy(format, a, fresh) || signedBy(format, a, old) {
					t.Errorf("not signed by the new secret alone: %v", a.header)
				}
			}
			if n := h.count("SELECT count(*) FROM deliveries") + h.count("SELECT count(*) FROM attempts"); n != 0 {
				t.Errorf("a check left %d rows", n)
			}
			h.as(tenant, func(q *sql.Queries) error {
				_, err := by.EndSecret(t.Context(), q, tenant, ep, secrets()[1].ID, false)
				return err
			})
		})
	}
}
