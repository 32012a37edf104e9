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
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
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
func CreateKey(ctx context.Context, q *sql.Queries, k NewKey, most int, by db.Author) (key show.Key, text string, err error) {
	if k.Tenant != nil {
		if _, err := q.LockTenant(ctx, *k.Tenant); err != nil {
			return key, "", err
		}
		n, err := q.CountLiveKeys(ctx, k.Tenant)
		if err != nil {
			return key, "", err
		}
		if n >= int64(most) {
			return key, "", fault.New(fault.Conflict, "keys_limit", fmt.Sprintf("A tenant can have %d API keys that are neither "+
				"revoked nor expired. Revoke one that you don't need, or ask the operator of this server for more.", most))
		}
	}
	if key, text, err = MakeKey(ctx, q, k); err != nil {
		return key, "", err
	}
	return key, text, db.Audit(ctx, q, by, keyCreated(key))
}

// MakeKey stores a new key in the caller's transaction, notifies its tenant, and returns the key and its text.
// The text itself is not stored.
func MakeKey(ctx context.Context, q *sql.Queries, k NewKey) (show.Key, string, error) {
	key, text, err := makeKey(ctx, q, k)
	if err != nil || k.Tenant == nil {
		return key, text, err
	}
	u := id.Key.Format(key.ID)
	_, err = PostNotice(ctx, q, Notice{
		Tenant: *k.Tenant,
		Kind:   notice.KeyCreated,
		Key:    string(notice.KeyCreated) + ":" + u,
		Details: notice.KeyDetails{
			Key:       u,
			Name:      key.Name,
			Prefix:    key.Prefix,
			Scopes:    key.Scopes,
			ExpiresAt: key.ExpiresAt,
		},
	})
	return key, text, err
}

func makeKey(ctx context.Context, q *sql.Queries, k NewKey) (show.Key, string, error) {
	prefix := tenantKeyPrefix
	if k.Tenant == nil {
		prefix = platformKeyPrefix
	}
	switch name, err := q.HomeName(ctx); {
	case err == nil:
		prefix += name + "_"
	case !db.IsMissing(err):
		return show.Key{}, "", err
	}
	shown := prefix + randomBase62(keyShown)
	text := shown + randomBase62(keySecret)
	hash := sha256.Sum256([]byte(text))
	keyID := db.NewID()
	in := sql.InsertKeyParams{
		ID:        keyID,
		TenantID:  k.Tenant,
		Name:      k.Name,
		Prefix:    shown,
		Hash:      hash[:],
		Scopes:    k.Scopes.Names(),
		CreatedAt: keyID.Time(),
		ExpiresAt: k.ExpiresAt,
	}
	return show.Key{
		ID:        in.ID,
		Tenant:    in.TenantID,
		Name:      in.Name,
		Prefix:    in.Prefix,
		Scopes:    in.Scopes,
		CreatedAt: in.CreatedAt,
		ExpiresAt: in.ExpiresAt,
	}, text, q.InsertKey(ctx, in)
}

func keyOf(row sql.APIKey) show.Key {
	return show.Key{
		ID:         row.ID,
		Tenant:     row.TenantID,
		Name:       row.Name,
		Prefix:     row.Prefix,
		Scopes:     row.Scopes,
		CreatedAt:  row.CreatedAt,
		ExpiresAt:  row.ExpiresAt,
		RevokedAt:  row.RevokedAt,
		LastUsedAt: row.LastUsedAt,
	}
}

// ListKeys reads a page of a tenant's keys.
func ListKeys(ctx context.Context, q *sql.Queries, tenant id.UUID, r show.Range) (show.Page[show.Key], error) {
	low, high := db.Bounds(r)
	rows, err := q.ListKeys(ctx, sql.ListKeysParams{
		TenantID: &tenant,
		Low:      low,
		High:     high,
		Newest:   !r.Ascending,
		Limit:    db.Limit(r),
	})
	page := show.CutByID(rows, r.Limit, func(row sql.APIKey) id.UUID { return row.ID })
	return show.Each(page, keyOf), err
}

// PlatformKeys reads the keys that can act for any tenant, the live ones first. There are few.
func PlatformKeys(ctx context.Context, q *sql.Queries, limit int) ([]show.Key, error) {
	rows, err := q.ListPlatformKeys(ctx, int32(limit))
	return show.Each(show.Page[sql.APIKey]{Rows: rows}, keyOf).Rows, err
}

// ReadKey reads a key of a tenant.
func ReadKey(ctx context.Context, q *sql.Queries, tenant, keyID id.UUID) (show.Key, error) {
	row, err := q.GetKey(ctx, &tenant, keyID)
	return keyOf(row), err
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

// Credential is what a key's text allows.
type Credential struct {
	Key, Tenant id.UUID // Tenant is zero for a platform key
	Scopes      []string
	ExpiresAt   time.Time // zero: never
	Revoked     bool
	State       account.TenantState // of the tenant
}

// FindKey finds the key with a hash, of any tenant.
func (d Keys) FindKey(ctx context.Context, hash [sha256.Size]byte) (c Credential, err error) {
	err = d.Ingest(ctx, func(q *sql.Queries) error {
		row, err := q.FindKey(ctx, hash[:])
		c = Credential{row.ID, row.TenantID, row.Scopes, row.ExpiresAt, row.Revoked, account.TenantState(row.TenantState)}
		return err
	})
	return c, err
}

// TenantState is a tenant's state.
func (d Keys) TenantState(ctx context.Context, tenant id.UUID) (state account.TenantState, err error) {
	err = d.Ingest(ctx, func(q *sql.Queries) error {
		text, err := q.TenantState(ctx, tenant)
		state = account.TenantState(text)
		return err
	})
	return state, err
}

// FindTenant finds the tenant with an external id.
func (d Keys) FindTenant(ctx context.Context, external string) (id.UUID, error) {
	return db.Read(ctx, d.Ingest, func(q *sql.Queries) (id.UUID, error) { return q.FindTenant(ctx, external) })
}

// FindEndpoint finds a tenant's endpoint with an external id.
func (d Keys) FindEndpoint(ctx context.Context, tenant id.UUID, external string) (endpoint id.UUID, err error) {
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		endpoint, err = q.EndpointOfExternalID(ctx, tenant, external)
		return err
	})
	return endpoint, err
}

// KeysRevision changes with every revocation of a key and every suspension of a tenant.
func (d Keys) KeysRevision(ctx context.Context) (int64, error) {
	return db.Read(ctx, d.Ingest, func(q *sql.Queries) (int64, error) { return q.KeysRevision(ctx) })
}

// TouchKeys records that keys were used.
func (d Keys) TouchKeys(ctx context.Context, keys []id.UUID) error {
	return d.Ingest(ctx, func(q *sql.Queries) error { return q.TouchKeys(ctx, keys) })
}

// EndKey revokes a key of a tenant, and audits it unless the key was revoked before. Every process drops its cached
// keys within a second.
func EndKey(ctx context.Context, q *sql.Queries, tenant, keyID id.UUID, by db.Author) (show.Key, error) {
	row, err := q.GetKey(ctx, &tenant, keyID)
	if err != nil {
		return show.Key{}, err
	}
	n, err := q.RevokeKey(ctx, &tenant, keyID)
	if err != nil {
		return show.Key{}, err
	}
	return keyRevoked(ctx, q, keyOf(row), n > 0, by)
}

// EndPlatformKey revokes a platform key, and audits it unless the key was revoked before.
func EndPlatformKey(ctx context.Context, d *db.DB, keyID id.UUID, by db.Author) (key show.Key, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.GetPlatformKey(ctx, keyID)
		if err != nil {
			return err
		}
		n, err := q.RevokePlatformKey(ctx, keyID)
		if err != nil {
			return err
		}
		key, err = keyRevoked(ctx, q, keyOf(row), n > 0, by)
		return err
	})
	return key, err
}

// keyRevoked makes every process forget a key, and audits its end, if it was just revoked.
func keyRevoked(ctx context.Context, q *sql.Queries, k show.Key, now bool, by db.Author) (show.Key, error) {
	if !now {
		return k, nil
	}
	if err := q.BumpKeysRevision(ctx); err != nil {
		return k, err
	}
	return k, db.Audit(ctx, q, by, db.Audited{
		Tenant:  k.Tenant,
		Action:  "key.revoked",
		Kind:    "key",
		Object:  id.Key.Format(k.ID),
		Details: map[string]string{"name": k.Name, "prefix": k.Prefix},
	})
}
