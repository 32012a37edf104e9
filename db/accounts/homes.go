package accounts

import (
	"context"
	"strings"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// TakeHome makes a database the home of a name, unless it has a name already, and returns its name. New API keys name
// the home from then on.
func TakeHome(ctx context.Context, d *db.DB, name string) (is string, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		if is, err = q.HomeName(ctx); !db.IsMissing(err) {
			return err
		}
		is, err = q.TakeHome(ctx, name)
		return err
	})
	return is, err
}

// Moved is where the tenants are that have moved from this home to another.
type Moved struct {
	version string
	tenants map[string]string // the home, by the tenant's id and its external id
	hashes  map[[32]byte]string
}

// None reports whether it is known that no tenant has moved.
func (m *Moved) None() bool { return m != nil && len(m.tenants) == 0 }

// Home is where the tenant of an id, or of an external id, has moved; empty: it has not.
func (m *Moved) Home(tenant string) string {
	if m == nil {
		return ""
	}
	return m.tenants[tenant]
}

// HomeOf is Home for the SHA-256 of a key or token.
func (m *Moved) HomeOf(hash [32]byte) string {
	if m == nil {
		return ""
	}
	return m.hashes[hash]
}

// ReadMoved returns the tenants that have moved: the ones that are known, if nothing has changed.
func ReadMoved(ctx context.Context, d *db.DB, known *Moved) (*Moved, error) {
	m := known
	err := d.Console(ctx, func(q *sql.Queries) error {
		version, err := q.MovedVersion(ctx)
		if err != nil || known != nil && version == known.version {
			return err
		}
		rows, err := q.MovedTenants(ctx)
		m = &Moved{version: version, tenants: map[string]string{}, hashes: map[[32]byte]string{}}
		for _, t := range rows {
			m.tenants[id.Tenant.Format(t.TenantID)] = t.Home
			if t.ExternalID != nil {
				m.tenants[*t.ExternalID] = t.Home
			}
			for _, hash := range t.Hashes {
				m.hashes[[32]byte(hash)] = t.Home
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// UnfinishedMoves are the moves of tenants from and to this home that are not finished.
func UnfinishedMoves(ctx context.Context, q *sql.Queries) ([]home.Move, error) {
	rows, err := q.UnfinishedMoves(ctx)
	all := make([]home.Move, len(rows))
	for i, r := range rows {
		all[i] = home.Move{
			Tenant:    id.Tenant.Format(r.TenantID),
			Name:      r.Name,
			In:        r.Direction == "in",
			Home:      r.Home,
			Closed:    r.Closed,
			StartedAt: r.StartedAt,
			StoppedAt: db.OrZero(r.StoppedAt),
			KeptLog:   r.KeptLog,
		}
	}
	return all, err
}

// signedLinks are the links that a home signs. Whoever has one needs nothing else.
var signedLinks = []struct {
	path, purpose string
	tenant        func(payload []byte) (id.UUID, bool)
}{
	{unsubscribePath, UnsubscribePurpose, func(payload []byte) (id.UUID, bool) {
		s, ok := notice.ParseSubscription(payload)
		return s.Tenant, ok
	}},
	{delivery.LinkPath, delivery.LinkPurpose, func(payload []byte) (id.UUID, bool) {
		l, ok := delivery.ParseLink(payload)
		return l.Tenant, ok
	}},
}

// unsubscribePath is where links to unsubscribe lead.
const unsubscribePath = "/unsubscribe/"

// LinkTenant is the tenant that a signed link names, whoever has signed it. Other paths are no links.
func LinkTenant(path string) (tenant id.UUID, link bool) {
	for _, l := range signedLinks {
		if token, ok := strings.CutPrefix(path, l.path); ok {
			payload, _ := seal.ReadToken(token)
			return l.tenant(payload)
		}
	}
	return tenant, false
}

// ForwardedLink is the path of a signed link of this home as the home accepts it to which the tenant has moved: signed
// with the key that a move gives to both. A link to unsubscribe names the person by address, who can have another id
// there. A link that this home has not signed stays as it is, and the other home rejects it.
func ForwardedLink(ctx context.Context, d *db.DB, ring *seal.Ring, path string) string {
	for _, l := range signedLinks {
		token, ok := strings.CutPrefix(path, l.path)
		payload, signed := ring.OpenToken(l.purpose, token)
		tenant, named := l.tenant(payload)
		if !ok || !signed || !named {
			continue
		}
		key, err := linkKey(ctx, d, ring, tenant)
		if err != nil {
			continue
		}
		if l.purpose == UnsubscribePurpose {
			payload = []byte(subscriber(ctx, d, payload) + "\x00" + string(payload))
		}
		return l.path + seal.TokenOf(key, l.purpose, payload)
	}
	return path
}

// subscriber is the address of the person that a link to unsubscribe names; empty: it names an address itself.
func subscriber(ctx context.Context, d *db.DB, payload []byte) string {
	s, _ := notice.ParseSubscription(payload)
	person, ok := notice.RecipientPerson(s.Recipient)
	if !ok {
		return ""
	}
	a, err := db.Read(ctx, d.Account, func(q *db.Tx) (account.Account, error) { return Get(ctx, q, account.Person, person) })
	if err != nil {
		return ""
	}
	return a.Email
}

// ArrivedLink is what a link to unsubscribe says that the former home of a tenant has signed; false: none has.
func ArrivedLink(ctx context.Context, d *db.DB, ring *seal.Ring, token string) (s notice.Subscription, ok bool, err error) {
	payload, _ := seal.ReadToken(token)
	email, said, ok := strings.Cut(string(payload), "\x00")
	if !ok {
		return s, false, nil
	}
	if s, ok = notice.ParseSubscription([]byte(said)); !ok {
		return s, false, nil
	}
	key, err := linkKey(ctx, d, ring, s.Tenant)
	if err != nil || !seal.OpensTokenOf(key, UnsubscribePurpose, token) {
		if db.IsMissing(err) {
			err = nil
		}
		return s, false, err
	}
	person, ok := notice.RecipientPerson(s.Recipient)
	if !ok || email == "" {
		return s, true, nil
	}
	err = d.Account(ctx, func(q *sql.Queries) error {
		_, err := Get(ctx, q, account.Person, person)
		if !db.IsMissing(err) {
			return err
		}
		found, err := Find(ctx, q, account.Person, email)
		if err == nil {
			s.Recipient = notice.PersonRecipient(found.ID)
		}
		if db.IsMissing(err) {
			err = nil
		}
		return err
	})
	return s, true, err
}

// ArrivedEventLink reports whether the former home of a tenant has signed a link to an event.
func ArrivedEventLink(ctx context.Context, d *db.DB, ring *seal.Ring, tenant id.UUID, token string) (bool, error) {
	key, err := linkKey(ctx, d, ring, tenant)
	if db.IsMissing(err) {
		return false, nil
	}
	return err == nil && seal.OpensTokenOf(key, delivery.LinkPurpose, token), err
}

func linkKey(ctx context.Context, d *db.DB, ring *seal.Ring, tenant id.UUID) ([]byte, error) {
	sealed, err := db.Read(ctx, d.Console, func(q *sql.Queries) ([]byte, error) { return q.MovedKey(ctx, tenant) })
	if err != nil {
		return nil, err
	}
	return ring.Open(sealed, tenant, tenant)
}
