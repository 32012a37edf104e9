package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// The prefixes of API keys. People and secret scanners recognize keys by them.
const (
	tenantKeyPrefix   = "phk_"
	platformKeyPrefix = "php_"
)

// A key's text is its prefix, the name of its home and an underscore if there are homes, 6 characters that lists show
// later, and 43 characters that are never shown again: 43 characters of base62 hold 256 bits.
const (
	keyShown  = 6
	keySecret = 43
	base62    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// NewKey describes a key to be created.
type NewKey struct {
	Tenant    *id.UUID // nil: a platform key
	Name      string
	Scopes    access.Scopes
	ExpiresAt *time.Time
}

// MaxKeys is how many keys that are neither revoked nor expired a tenant can have by default.
const MaxKeys = 200

// CreateKey creates a key and audits it, in the caller's transaction. most bounds a tenant's keys that are neither
// revoked nor expired; the lock on the tenant's row makes the count exact. See MakeKey.
func CreateKey(ctx context.Context, q *sql.Queries, k NewKey, most int, by db.Author) (row sql.APIKey, text string,
	err error,
) {
	if k.Tenant != nil {
		if _, err := q.LockTenant(ctx, *k.Tenant); err != nil {
			return row, "", err
		}
		n, err := q.CountLiveKeys(ctx, k.Tenant)
		if err != nil {
			return row, "", err
		}
		if n >= int64(most) {
			return row, "", fault.New(fault.Conflict, "keys_limit", fmt.Sprintf("A tenant can have %d API keys that are neither "+
				"revoked nor expired. Revoke one that you don't need, or ask the operator of this server for more.", most))
		}
	}
	if row, text, err = MakeKey(ctx, q, k); err != nil {
		return row, "", err
	}
	return row, text, db.Audit(ctx, q, by, keyCreated(row))
}

// MakeKey stores a new key in the caller's transaction, notifies its tenant, and returns the key's row and its text.
// The text itself is not stored.
func MakeKey(ctx context.Context, q *sql.Queries, k NewKey) (sql.APIKey, string, error) {
	row, text, err := makeKey(ctx, q, k)
	if err != nil || k.Tenant == nil {
		return row, text, err
	}
	u := id.Key.Format(row.ID)
	_, err = PostNotice(ctx, q, Notice{
		Tenant: *k.Tenant, Kind: notice.KeyCreated, Key: string(notice.KeyCreated) + ":" + u,
		Details: notice.KeyDetails{
			Key: u, Name: row.Name, Prefix: row.Prefix, Scopes: row.Scopes, ExpiresAt: row.ExpiresAt,
		},
	})
	return row, text, err
}

func makeKey(ctx context.Context, q *sql.Queries, k NewKey) (sql.APIKey, string, error) {
	prefix := tenantKeyPrefix
	if k.Tenant == nil {
		prefix = platformKeyPrefix
	}
	switch name, err := q.HomeName(ctx); {
	case err == nil:
		prefix += name + "_"
	case !db.IsMissing(err):
		return sql.APIKey{}, "", err
	}
	shown := prefix + randomBase62(keyShown)
	text := shown + randomBase62(keySecret)
	hash := sha256.Sum256([]byte(text))
	keyID := db.NewID()
	row := sql.APIKey{
		ID: keyID, TenantID: k.Tenant, Name: k.Name, Prefix: shown, Hash: hash[:], Scopes: k.Scopes.Names(),
		CreatedAt: keyID.Time(), ExpiresAt: k.ExpiresAt,
	}
	err := q.InsertKey(ctx, sql.InsertKeyParams{
		ID: row.ID, TenantID: row.TenantID, Name: row.Name, Prefix: row.Prefix, Hash: row.Hash, Scopes: row.Scopes,
		CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt,
	})
	return row, text, err
}

// randomBase62 draws n characters evenly: bytes beyond the largest multiple of 62 are discarded.
func randomBase62(n int) string {
	out := make([]byte, 0, n)
	var chunk [64]byte
	for {
		_, _ = rand.Read(chunk[:]) // never fails: the program would have crashed
		for _, b := range chunk {
			if b < 62*4 {
				out = append(out, base62[b%62])
			}
			if len(out) == n {
				return string(out)
			}
		}
	}
}

// IsPlatformKey reports whether a text has the prefix of platform keys.
func IsPlatformKey(text string) bool { return strings.HasPrefix(text, platformKeyPrefix) }

// LooksLikeKey reports whether a text has the shape of a key, so that other texts are not looked up.
func LooksLikeKey(text string) bool {
	if !strings.HasPrefix(text, tenantKeyPrefix) && !strings.HasPrefix(text, platformKeyPrefix) {
		return false
	}
	rest := text[len(tenantKeyPrefix):]
	if name := home.OfKey(text); name != "" {
		rest = rest[len(name)+1:]
	}
	if len(rest) != keyShown+keySecret {
		return false
	}
	for i := range len(rest) {
		c := rest[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Keys looks API keys up in a database.
type Keys struct{ *db.DB }

// FindKey finds the key with a hash, of any tenant.
func (d Keys) FindKey(ctx context.Context, hash [sha256.Size]byte) (row sql.FindKeyRow, err error) {
	err = d.Ingest(ctx, func(q *sql.Queries) error {
		row, err = q.FindKey(ctx, hash[:])
		return err
	})
	return row, err
}

// TenantState is a tenant's state.
func (d Keys) TenantState(ctx context.Context, tenant id.UUID) (state string, err error) {
	err = d.Ingest(ctx, func(q *sql.Queries) error {
		state, err = q.TenantState(ctx, tenant)
		return err
	})
	return state, err
}

// FindTenant finds the tenant with an external id.
func (d Keys) FindTenant(ctx context.Context, external string) (tenant id.UUID, err error) {
	err = d.Ingest(ctx, func(q *sql.Queries) error {
		tenant, err = q.FindTenant(ctx, external)
		return err
	})
	return tenant, err
}

// FindEndpoint finds a tenant's endpoint with an external id.
func (d Keys) FindEndpoint(ctx context.Context, tenant id.UUID, external string) (endpoint id.UUID, err error) {
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		endpoint, err = q.EndpointOfExternalID(ctx, sql.EndpointOfExternalIDParams{
			TenantID:   tenant,
			ExternalID: external,
		})
		return err
	})
	return endpoint, err
}

// KeysRevision changes with every revocation of a key and every suspension of a tenant.
func (d Keys) KeysRevision(ctx context.Context) (n int64, err error) {
	err = d.Ingest(ctx, func(q *sql.Queries) error {
		n, err = q.KeysRevision(ctx)
		return err
	})
	return n, err
}

// TouchKeys records that keys were used.
func (d Keys) TouchKeys(ctx context.Context, keys []id.UUID) error {
	return d.Ingest(ctx, func(q *sql.Queries) error { return q.TouchKeys(ctx, keys) })
}

// EndKey revokes a key of a tenant, and audits it unless the key was revoked before. Every process drops its cached
// keys within a second.
func EndKey(ctx context.Context, q *sql.Queries, tenant, keyID id.UUID, by db.Author) (sql.APIKey, error) {
	row, err := q.GetKey(ctx, sql.GetKeyParams{TenantID: &tenant, ID: keyID})
	if err != nil {
		return row, err
	}
	revoked, err := q.RevokeKey(ctx, sql.RevokeKeyParams{TenantID: &tenant, ID: keyID})
	if err != nil || revoked == 0 {
		return row, err
	}
	if err := q.BumpKeysRevision(ctx); err != nil {
		return row, err
	}
	return row, db.Audit(ctx, q, by, db.Audited{
		Tenant: &tenant, Action: "key.revoked", Kind: "key", Object: id.Key.Format(keyID), Details: map[string]string{
			"name":   row.Name,
			"prefix": row.Prefix,
		},
	})
}
