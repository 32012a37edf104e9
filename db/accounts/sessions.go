package accounts

import (
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// FindSession finds a session by the token of its cookie. It deletes a session that has expired, or whose person is
// disabled, so that the session can never become valid again. Such a session, and an unknown token, is
// fault.ErrNotFound.
func FindSession(ctx context.Context, d *db.DB, kind account.Kind, token string) (s account.Session, err error) {
	ended := false
	err = d.Account(ctx, func(q *sql.Queries) error {
		row, err := q.FindSession(ctx, HashToken(token))
		if err != nil {
			return err
		}
		if ended = row.Disabled || row.Kind != string(kind) || !kind.Alive(row.Now, row.SeenAt, row.ExpiresAt); ended {
			_, err := q.DeleteSession(ctx, row.ID)
			return err
		}
		s = account.Session{
			ID:        row.ID,
			Kind:      kind,
			User:      account.User{Kind: kind, Name: row.Name, Email: row.Email, TOTP: row.HasTotp},
			Link:      row.LinkID,
			Pending:   row.Pending,
			Fresh:     account.IsFresh(row.Now, row.FreshAt),
			Only:      row.SSOTenant,
			Created:   row.CreatedAt,
			Seen:      row.SeenAt,
			Idle:      row.Now.Sub(row.SeenAt),
			Remaining: row.ExpiresAt.Sub(row.Now),
			Address:   row.Address,
			Agent:     row.Agent,
			Data:      row.Data,
			Once:      row.Once,
		}
		if owner := ownerOf(row.PersonID, row.OperatorID); owner != nil {
			s.User.ID = *owner
		}
		return nil
	})
	if err == nil && ended {
		err = fault.ErrNotFound
	}
	return s, err
}

// Sessions lists the sessions that a person can end, the last used first, in the caller's transaction.
func Sessions(ctx context.Context, q *sql.Queries, person id.UUID) ([]account.Session, error) {
	rows, err := q.ListSessionsOfPerson(ctx, &person, int32(account.Person.Idle().Seconds()))
	all := make([]account.Session, len(rows))
	for i, r := range rows {
		all[i] = account.Session{ID: r.ID, Created: r.CreatedAt, Seen: r.SeenAt, Address: r.Address, Agent: r.Agent}
	}
	return all, err
}

// KnowsBrowser reports whether a person has a session in a browser of this description, or no session at all, in the
// caller's transaction.
func KnowsBrowser(ctx context.Context, q *sql.Queries, person id.UUID, agent string) (bool, error) {
	known, err := q.KnownBrowser(ctx, storedAgent(agent), &person)
	return known.Own || known.Others == 0, err
}

// DeleteSession ends a session.
func DeleteSession(ctx context.Context, d *db.DB, session id.UUID) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		_, err := q.DeleteSession(ctx, session)
		return err
	})
}

// SaveSessionData stores the data that a session keeps between pages.
func SaveSessionData(ctx context.Context, d *db.DB, session id.UUID, data json.RawMessage) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.SetSessionData(ctx, data, session)
	})
}

// KeepOnce stores a sealed value that one page of a session shows once. It replaces the value before it.
func KeepOnce(ctx context.Context, d *db.DB, session id.UUID, sealed []byte) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.SetSessionOnce(ctx, sealed, session)
	})
}

// TakeOnce deletes a value that KeepOnce stored. It returns true to one caller only.
func TakeOnce(ctx context.Context, d *db.DB, session id.UUID, sealed []byte) (taken bool, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		n, err := q.TakeSessionOnce(ctx, session, sealed)
		taken = n > 0
		return err
	})
	return taken, err
}

// TouchSession records that a session is in use, and from where.
func TouchSession(ctx context.Context, d *db.DB, session id.UUID, address string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.TouchSession(ctx, address, session)
	})
}

// RotateSession gives a session a new token, in the caller's transaction, after its owner has authenticated again. A
// pending session becomes a full one. A session that has ended is fault.ErrNotFound.
func RotateSession(ctx context.Context, q *sql.Queries, kind account.Kind, session id.UUID) (token string, err error) {
	token, hash := NewToken()
	n, err := q.RotateSession(ctx, sql.RotateSessionParams{
		ID:    session,
		Hash:  hash,
		Lives: int32(kind.Life() / time.Second),
	})
	return token, foundOne(n, err)
}

// EndSessionOf ends one session of a person and audits it. A session that is not the person's is fault.ErrNotFound.
func EndSessionOf(ctx context.Context, d *db.DB, self Self, session id.UUID) error {
	return self.endSessions(ctx, d, func(q *sql.Queries) error {
		return foundOne(q.EndSessionOfPerson(ctx, &self.ID, session))
	})
}

// EndOtherSessions ends all sessions of a user but one, and audits it.
func EndOtherSessions(ctx context.Context, d *db.DB, self Self, keep id.UUID) error {
	return self.endSessions(ctx, d, func(q *sql.Queries) error {
		_, err := q.EndSessionsOf(ctx, &self.ID, keep)
		return err
	})
}

func (s Self) endSessions(ctx context.Context, d *db.DB, end func(*sql.Queries) error) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		if err := end(q); err != nil {
			return err
		}
		return s.Audit(ctx, q, "sessions.ended", nil)
	})
}

// ErrSSORequired rejects a session that the tenant's identity provider did not start, if the tenant accepts no other.
var ErrSSORequired = fault.New(fault.Forbidden, "sso_required", "This tenant requires single sign-on. Sign in with its identity provider.")

// TenantsOf lists the tenants of a person that a session opens. only is the tenant whose provider started the session:
// the session then opens no other tenant, since the provider has authority for that tenant alone.
func TenantsOf(ctx context.Context, q *sql.Queries, person id.UUID, only *id.UUID) ([]account.Membership, error) {
	rows, err := q.TenantsOf(ctx, person)
	var all []account.Membership
	for _, t := range rows {
		if only != nil && t.TenantID != *only {
			continue
		}
		all = append(all, account.Membership{
			Tenant:      t.TenantID,
			Member:      t.MemberID,
			Name:        t.TenantName,
			Role:        access.Role(t.Role),
			State:       account.TenantState(t.TenantState),
			SSORequired: t.SSORequired,
		})
	}
	return all, err
}

// EnterTenant returns the tenants of a person that a session opens, and the one to enter, which is stored as the last
// one. only is as in TenantsOf. A tenant that is deleted or not the person's is fault.ErrNotFound. A tenant that
// requires another way to sign in is ErrSSORequired.
func EnterTenant(ctx context.Context, d *db.DB, person, tenant id.UUID, only *id.UUID) (
	all []account.Membership,
	entered account.Membership,
	err error,
) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		if all, err = TenantsOf(ctx, q, person, only); err != nil {
			return err
		}
		for _, t := range all {
			if t.Tenant == tenant && t.State != account.TenantDeleted {
				entered = t
				if t.SSORequired && only == nil {
					return ErrSSORequired
				}
				return q.SetLastTenant(ctx, &tenant, person)
			}
		}
		return fault.ErrNotFound
	})
	return all, entered, err
}
