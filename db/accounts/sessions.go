package accounts

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// FindSession finds a session by the token of its cookie. It deletes a session that has expired, or whose person is
// disabled, so that the session can never become valid again. Such a session, and an unknown token, is
// fault.ErrNotFound.
func FindSession(ctx context.Context, d *db.DB, kind account.Kind, token string) (row sql.FindSessionRow, err error) {
	ended := false
	err = d.Account(ctx, func(q *sql.Queries) error {
		if row, err = q.FindSession(ctx, HashToken(token)); err != nil {
			return err
		}
		if ended = row.Disabled || row.Kind != string(kind) || !kind.Alive(row.Now, row.SeenAt, row.ExpiresAt); ended {
			_, err := q.DeleteSession(ctx, row.ID)
			return err
		}
		return nil
	})
	if err == nil && ended {
		err = fault.ErrNotFound
	}
	return row, err
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
		return q.SetSessionData(ctx, sql.SetSessionDataParams{ID: session, Data: data})
	})
}

// KeepOnce stores a sealed value that one page of a session shows once. It replaces the value before it.
func KeepOnce(ctx context.Context, d *db.DB, session id.UUID, sealed []byte) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.SetSessionOnce(ctx, sql.SetSessionOnceParams{ID: session, Once: sealed})
	})
}

// TakeOnce deletes a value that KeepOnce stored. It returns true to one caller only.
func TakeOnce(ctx context.Context, d *db.DB, session id.UUID, sealed []byte) (taken bool, err error) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		n, err := q.TakeSessionOnce(ctx, sql.TakeSessionOnceParams{ID: session, Once: sealed})
		taken = n > 0
		return err
	})
	return taken, err
}

// TouchSession records that a session is in use, and from where.
func TouchSession(ctx context.Context, d *db.DB, session id.UUID, address string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		return q.TouchSession(ctx, sql.TouchSessionParams{ID: session, Address: address})
	})
}

// RotateSession gives a session a new token, in the caller's transaction, after its owner has authenticated again. A
// pending session becomes a full one. A session that has ended is fault.ErrNotFound.
func RotateSession(ctx context.Context, q *sql.Queries, kind account.Kind, session id.UUID) (token string, err error) {
	token, hash := NewToken()
	n, err := q.RotateSession(ctx, sql.RotateSessionParams{
		ID: session, Hash: hash, Lives: int32(kind.Life() / time.Second),
	})
	if err == nil && n == 0 {
		err = fault.ErrNotFound
	}
	return token, err
}

// EndSessionOf ends one session of a person and audits it. A session that is not the person's is fault.ErrNotFound.
func EndSessionOf(ctx context.Context, d *db.DB, person, session id.UUID, address string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		n, err := q.EndSessionOfPerson(ctx, sql.EndSessionOfPersonParams{PersonID: &person, ID: session})
		if err == nil && n == 0 {
			err = fault.ErrNotFound
		}
		if err != nil {
			return err
		}
		return AuditPerson(ctx, q, person, address, "sessions.ended", nil)
	})
}

// EndOtherSessions ends all sessions of a person but one, and audits it.
func EndOtherSessions(ctx context.Context, d *db.DB, person, keep id.UUID, address string) error {
	return d.Account(ctx, func(q *sql.Queries) error {
		if _, err := q.EndSessionsOfPerson(ctx, sql.EndSessionsOfPersonParams{
			PersonID: &person,
			But:      keep,
		}); err != nil {
			return err
		}
		return AuditPerson(ctx, q, person, address, "sessions.ended", nil)
	})
}

// TenantDeleted is the state of a tenant that was deleted but not erased yet. It has no members, even if a person
// joined during the deletion.
const TenantDeleted = "deleted"

// ErrSSORequired rejects a session that the tenant's identity provider did not start, if the tenant accepts no other.
var ErrSSORequired = fault.New(fault.Forbidden, "sso_required", "This tenant requires single sign-on. Sign in with its identity provider.")

// TenantsOf lists the tenants of a person that a session opens. only is the tenant whose provider started the session:
// the session then opens no other tenant, since the provider has authority for that tenant alone.
func TenantsOf(ctx context.Context, q *sql.Queries, person id.UUID, only *id.UUID) ([]sql.TenantsOfRow, error) {
	all, err := q.TenantsOf(ctx, person)
	if only != nil {
		all = slices.DeleteFunc(all, func(t sql.TenantsOfRow) bool { return t.TenantID != *only })
	}
	return all, err
}

// EnterTenant returns the tenants of a person that a session opens, and the one to enter, which is stored as the last
// one. only is as in TenantsOf. A tenant that is deleted or not the person's is fault.ErrNotFound. A tenant that
// requires another way to sign in is ErrSSORequired.
func EnterTenant(ctx context.Context, d *db.DB, person, tenant id.UUID, only *id.UUID) (all []sql.TenantsOfRow,
	entered sql.TenantsOfRow, err error,
) {
	err = d.Account(ctx, func(q *sql.Queries) error {
		if all, err = TenantsOf(ctx, q, person, only); err != nil {
			return err
		}
		for _, t := range all {
			if t.TenantID == tenant && t.TenantState != TenantDeleted {
				entered = t
				if t.SSORequired && only == nil {
					return ErrSSORequired
				}
				return q.SetLastTenant(ctx, sql.SetLastTenantParams{PersonID: person, TenantID: &tenant})
			}
		}
		return fault.ErrNotFound
	})
	return all, entered, err
}
