package endpoints

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/domain/show"
)

// Platform owns the keys of the platform's own signature, which are kept as those of a tenant.
var Platform id.UUID

// SigningKeys are the published keys of a tenant or of Platform, newest first.
func SigningKeys(ctx context.Context, q *sql.Queries, owner id.UUID) ([]show.SigningKey, error) {
	rows, err := q.SigningKeys(ctx, owner)
	return signingKeysOf(rows, time.Now()), err
}

func signingKeysOf(rows []sql.SigningKey, now time.Time) []show.SigningKey {
	spans := make([]httpsig.Span, len(rows))
	for i, r := range rows {
		spans[i] = httpsig.Span{StartsAt: r.StartsAt, ExpiresAt: r.ExpiresAt}
	}
	keys := make([]show.SigningKey, len(rows))
	for i, r := range rows {
		keys[i] = show.SigningKey{
			ID:        r.ID,
			Public:    r.PublicKey,
			State:     httpsig.StateOf(spans, i, now),
			CreatedAt: r.CreatedAt,
			Span:      spans[i],
		}
	}
	return keys
}

// signersOf are the keys of SigningKeys with their private halves.
func signersOf(ctx context.Context, q *sql.Queries, ring *seal.Ring, owner id.UUID) ([]httpsig.Signer, error) {
	rows, err := q.SigningKeys(ctx, owner)
	if err != nil {
		return nil, err
	}
	return OpenSigners(rows, ring)
}

// OpenSigners opens stored keys.
func OpenSigners(rows []sql.SigningKey, ring *seal.Ring) ([]httpsig.Signer, error) {
	signers := make([]httpsig.Signer, len(rows))
	for i, r := range rows {
		seed, err := ring.Open(r.Sealed, r.TenantID, r.ID)
		if err != nil {
			return nil, db.Unopened(err)
		}
		signers[i] = httpsig.NewSigner([ed25519.SeedSize]byte(seed), httpsig.Span{StartsAt: r.StartsAt, ExpiresAt: r.ExpiresAt})
	}
	return signers, nil
}

// clockSlack is how far back the start of a key lies that signs at once, in seconds: a worker's clock can be behind the
// database's.
const clockSlack = 60

// addSigningKey stores a new key, which signs so many seconds from now.
func addSigningKey(ctx context.Context, q *sql.Queries, ring *seal.Ring, owner id.UUID, startsIn int) (sql.SigningKey, error) {
	var seed [ed25519.SeedSize]byte
	_, _ = rand.Read(seed[:]) // never fails (crypto/rand)
	keyID := db.NewID()
	if startsIn == 0 {
		startsIn = -clockSlack
	}
	return q.InsertSigningKey(ctx, sql.InsertSigningKeyParams{
		TenantID:  owner,
		ID:        keyID,
		Sealed:    ring.Seal(seed[:], owner, keyID),
		PublicKey: ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey),
		StartsIn:  int32(startsIn),
	})
}

// ensureSigningKey creates the first key of a tenant or of Platform. Callers hold the owner's lock.
func ensureSigningKey(ctx context.Context, q *sql.Queries, ring *seal.Ring, owner id.UUID) error {
	rows, err := q.SigningKeys(ctx, owner)
	if err == nil && len(rows) == 0 {
		_, err = addSigningKey(ctx, q, ring, owner, 0)
	}
	return err
}

// ReadBot reads the platform's own signature of requests; nil: the operators have not turned it on, or the public URL
// can't have a directory. The first key is created when it is needed.
func ReadBot(ctx context.Context, d *db.DB, ring *seal.Ring, publicURL string) (bot *httpsig.Bot, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		platform, err := q.PlatformSettings(ctx)
		if err != nil || !settings.On(settings.BotSignature, platform) {
			return err
		}
		signers, err := signersOf(ctx, q, ring, Platform)
		if err == nil && len(signers) == 0 {
			if _, err = q.LockPlatform(ctx); err == nil {
				err = ensureSigningKey(ctx, q, ring, Platform)
			}
			if err == nil {
				signers, err = signersOf(ctx, q, ring, Platform)
			}
		}
		bot = httpsig.NewBot(publicURL, signers)
		return err
	})
	return bot, err
}

// RotateSigningKeys adds a key that signs so many seconds from now, and lets the others end a while later. With 0 it
// replaces all keys at once: that is for a leak.
func (ed Editor) RotateSigningKeys(ctx context.Context, q *sql.Queries, owner id.UUID, startsIn int) (show.SigningKey, error) {
	if err := httpsig.CheckStart(startsIn); err != nil {
		return show.SigningKey{}, err
	}
	if owner != Platform {
		if _, err := q.LockTenant(ctx, owner); err != nil {
			return show.SigningKey{}, err
		}
	} else if _, err := q.LockPlatform(ctx); err != nil {
		return show.SigningKey{}, err
	}
	before, err := SigningKeys(ctx, q, owner)
	if err != nil {
		return show.SigningKey{}, err
	}
	if startsIn > 0 && len(before) > 0 && before[0].State == httpsig.Next {
		return show.SigningKey{}, httpsig.ErrPending
	}
	if startsIn > 0 {
		if err := httpsig.CheckRoom(len(before)); err != nil {
			return show.SigningKey{}, err
		}
	}
	if len(before) == 0 {
		startsIn = 0 // nothing signs until then
	}
	added, err := addSigningKey(ctx, q, ed.Keys, owner, startsIn)
	if err != nil {
		return show.SigningKey{}, err
	}
	if err := retireOthers(ctx, q, owner, added, startsIn == 0); err != nil {
		return show.SigningKey{}, err
	}
	entry := db.Audited{
		Action:  "signing_key.rotate",
		Kind:    "signing_key",
		Object:  id.SigningKey.Format(added.ID),
		Details: map[string]any{"starts_in_seconds": startsIn},
	}
	if owner != Platform {
		entry.Tenant = &owner
		if _, err := q.BumpRouting(ctx, owner); err != nil {
			return show.SigningKey{}, err
		}
		if err := q.BumpPublicLanes(ctx, owner); err != nil {
			return show.SigningKey{}, err
		}
	}
	return signingKeysOf([]sql.SigningKey{added}, time.Now())[0], db.Audit(ctx, q, ed.By, entry)
}

// retireOthers ends the older keys: a while after the new one has begun to sign, or now.
func retireOthers(ctx context.Context, q *sql.Queries, owner id.UUID, added sql.SigningKey, now bool) error {
	if now {
		return q.DropOtherSigningKeys(ctx, owner, added.ID)
	}
	if err := q.RetireSigningKeys(ctx, sql.RetireSigningKeysParams{
		ExpiresAt: added.StartsAt.Add(httpsig.KeptFor),
		TenantID:  owner,
		Kept:      added.ID,
	}); err != nil {
		return err
	}
	return q.DropEndedSigningKeys(ctx, owner)
}
