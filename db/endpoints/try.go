package endpoints

import (
	"context"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
)

// Facts are what requests to an endpoint are made of, with its secrets opened. They are shown to nobody.
type Facts struct {
	Endpoint string // the external id; empty: it is not saved
	Settings endpoint.Settings
	Secrets  []Secret         // newest first
	Slot     int              // the one of Secrets that signs alone where one has to
	Signers  []httpsig.Signer // of the tenant, if the endpoint signs with them
	Proxy    *egress.Proxy    // nil: requests go directly
	Bot      *httpsig.Bot     // signs tests of connections as the platform; nil: nobody does
}

// Secret is a signing secret.
type Secret struct {
	Text  string
	Until time.Time // zero: it does not end
}

// ToTest are the facts of an endpoint for a test of its connection, without what Complete reads.
func ToTest(ctx context.Context, q *sql.Queries, ring *seal.Ring, tenant, endpointID id.UUID) (f Facts, err error) {
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return f, err
	}
	f.Endpoint = id.Endpoint.Format(endpointID)
	if f.Settings, err = OpenSettings(e, ring); err != nil {
		return f, err
	}
	live, err := q.LiveSecrets(ctx, tenant, endpointID)
	if err != nil {
		return f, err
	}
	f.Slot = slotOf(live, e.SlotSecretID)
	for _, s := range live {
		text, err := ring.Open(s.Sealed, tenant, endpointID)
		if err != nil {
			return f, db.Unopened(err)
		}
		f.Secrets = append(f.Secrets, Secret{Text: string(text), Until: db.OrZero(s.ExpiresAt)})
	}
	return f, nil
}

// CheckSecrets says whether the secrets can sign with the settings, which a test can have changed.
func (f *Facts) CheckSecrets() error {
	for _, s := range f.Secrets {
		if err := endpoint.CheckFormat(f.Settings.Wire(), endpoint.Secret{Text: s.Text}); err != nil {
			return err
		}
	}
	return nil
}

// Complete reads what else deliveries with the settings of a test would have: the proxy, and the keys of the tenant
// and the platform. A tenant that has no key yet gets its first, as if the endpoint was saved.
func (f *Facts) Complete(ctx context.Context, d *db.DB, ring *seal.Ring, tenant id.UUID, publicURL string) (err error) {
	if f.Settings.Public.Signed() {
		err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
			if _, err := q.LockTenant(ctx, tenant); err != nil {
				return err
			}
			if err := ensureSigningKey(ctx, q, ring, tenant); err != nil {
				return err
			}
			f.Signers, err = signersOf(ctx, q, ring, tenant)
			return err
		})
		if err != nil {
			return err
		}
	}
	if f.Proxy, err = readProxy(ctx, d, ring, tenant); err != nil {
		return err
	}
	f.Bot, err = ReadBot(ctx, d, ring, publicURL)
	return err
}
