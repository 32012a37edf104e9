package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"posthorn/db"
	"posthorn/db/maintenance"
	"posthorn/db/seal"
	"posthorn/domain/fault"
)

// masterKeyFile is in the data directory of a private PostgreSQL, readable only by its owner.
const masterKeyFile = "master.key"

// openRing finds the master key and checks that it is the right one: with another key every endpoint would lose its
// signing secret, one failed delivery after another.
func openRing(ctx context.Context, cfg *Config, s *store, d *db.DB) (*seal.Ring, error) {
	samples, err := maintenance.SealedSamples(ctx, d)
	if err != nil {
		return nil, err
	}
	keys, source, err := masterKey(cfg, s, len(samples) > 0)
	if err != nil {
		return nil, err
	}
	ring, err := seal.NewRing(keys.Reveal())
	if err != nil {
		return nil, fault.New(fault.Invalid, "master_key_invalid", source+" does not hold one or more keys of 32 bytes in base64, separated by commas. Put the right ones back, from a backup.")
	}
	for _, sample := range samples {
		if _, err := ring.Open(sample.Sealed, sample.TenantID, sample.EndpointID); err != nil {
			return nil, fault.New(fault.Invalid, "master_key_missing", fmt.Sprintf(
				"%s lacks a key that stored secrets are encrypted under. List that key too, after the new one and a comma.", source))
		}
	}
	return ring, nil
}

// masterKey is the configured key, else the one in the data directory, which it creates if necessary. The second result
// is the key's origin, for messages.
func masterKey(cfg *Config, s *store, needed bool) (keys Secret, source string, err error) {
	if cfg.MasterKey != "" {
		return cfg.MasterKey, "POSTHORN_MASTER_KEY", nil
	}
	if s.cluster == nil {
		return "", "", errNoMasterKey
	}
	path := filepath.Join(s.cluster.DataDir(), masterKeyFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && needed {
		return "", "", fault.New(
			fault.Invalid,
			"master_key_missing",
			path+" is missing, and stored secrets are encrypted with it. Restore it from a backup, or set POSTHORN_MASTER_KEY to the same key.",
		)
	}
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeMasterKey(path)
	}
	if err != nil {
		return "", "", &fault.Error{
			Kind:   fault.Invalid,
			Code:   "master_key_unreadable",
			Cause:  err,
			Detail: path + " can't be read or made. Run Posthorn as the user who owns the data directory, or set POSTHORN_MASTER_KEY.",
		}
	}
	return Secret(strings.TrimSpace(string(text))), path, nil
}

var errNoMasterKey = &ConfigError{[]Problem{{
	"POSTHORN_MASTER_KEY", "is not set. It encrypts the endpoints' secrets in the database of POSTHORN_DATABASE_URL; every Posthorn process on it needs the same one. " +
		"Make one with `openssl rand -base64 32`, and keep a copy apart from the database's backups.",
}}}

// makeMasterKey writes a new key. Of several processes that do it at once one wins, and all read the winner's: a file
// is complete before it gets its name, and a link never replaces.
func makeMasterKey(path string) ([]byte, error) {
	var random [32]byte
	_, _ = rand.Read(random[:])                                                 // never fails
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+masterKeyFile+"-*") // mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.WriteString(seal.Generate(random) + "\n")
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return nil, fmt.Errorf("writing a new master key: %w", err)
	}
	if err := os.Link(temporary.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("writing a new master key: %w", err)
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil {
		_ = dir.Sync() // the key must outlive a power cut as surely as what it encrypts
		_ = dir.Close()
	}
	return os.ReadFile(path)
}

type masterKeyRotateCommand struct {
	JSON bool `name:"json" help:"Print JSON: key_id and resealed."`
}

// Run seals everything under the newest configured key, also while Posthorn runs.
func (c masterKeyRotateCommand) Run(ctx context.Context, a *app) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	var ring *seal.Ring
	var n int
	err = a.withStoreAndDatabase(ctx, func(s *store, d *db.DB) error {
		if ring, err = openRing(ctx, &cfg, s, d); err != nil {
			return err
		}
		n, err = maintenance.Reseal(ctx, d, ring)
		if errors.Is(err, seal.ErrUnopened) {
			return &fault.Error{
				Kind:   fault.Invalid,
				Code:   "master_key_missing",
				Cause:  err,
				Detail: fmt.Sprintf("%d secrets are encrypted under the newest key now, but one can't be read. List the key that it is encrypted under too, after the new one and a comma, and run this again.", n),
			}
		}
		if err != nil {
			return err
		}
		return d.Console(ctx, func(q *db.Tx) error {
			return audit(ctx, q, nil, "master_key.rotated", "master_key", ring.KeyID())
		})
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return a.printJSON(struct {
			KeyID    string `json:"key_id"`
			Resealed int    `json:"resealed"`
		}{ring.KeyID(), n})
	}
	a.printf("%d secrets were encrypted again; all of them are under key %s now.\n"+
		"Once every Posthorn process has this key first in its list, the older keys can go from it.\n", n, ring.KeyID())
	return nil
}
