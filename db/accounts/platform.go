package accounts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/settings"
)

// ErrChanged rejects a settings form if the settings were changed after the form was shown.
var ErrChanged = fault.New(fault.Conflict, "settings_changed", "Someone else changed these settings in the meantime. The current values are shown: check them, and save again.")

// Version tells two versions of settings apart.
func Version(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Platform reads the platform's settings.
func Platform(ctx context.Context, d *db.DB) ([]byte, error) {
	return db.Read(ctx, d.Ingest, func(q *sql.Queries) ([]byte, error) { return q.PlatformSettings(ctx) })
}

// PlatformChange lists what a request changes about the platform.
type PlatformChange struct {
	Seen   string            // the version that the form was based on; empty for any
	Health map[string]any    // parts of the health policy by name; nil restores Posthorn's default
	Texts  map[string]string // settings.Fields by name; an empty text restores the default
}

// ChangePlatform changes the values that apply to tenants without their own, and returns all of the platform's
// settings. If the settings changed after the caller read them, it returns ErrChanged and writes nothing. A change
// without effect is not audited.
func ChangePlatform(ctx context.Context, d *db.DB, change PlatformChange, by db.Author) (all []byte, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		was, err := q.LockPlatform(ctx)
		if err != nil {
			return err
		}
		if change.Seen != "" && change.Seen != Version(string(was)) {
			return ErrChanged
		}
		changed := map[string]any{}
		if all, err = amend(was, change.Health, changed); err != nil {
			return err
		}
		to, texts, err := settings.Amend(all, settings.Fields(), change.Texts)
		if err != nil {
			return err
		}
		all = to
		maps.Copy(changed, pairs(texts))
		if len(changed) == 0 {
			return nil
		}
		if err := q.SetPlatformSettings(ctx, all); err != nil {
			return err
		}
		for name := range changed {
			if strings.HasPrefix(name, "health") {
				if err := q.BumpAllLanes(ctx); err != nil {
					return err
				}
				break
			}
		}
		return db.Audit(ctx, q, by, db.Audited{Action: "platform.updated", Kind: "platform", Details: changed})
	})
	return all, err
}

// pairs formats changes for the audit log: the old and the new value of each.
func pairs(changed map[string]settings.Change) map[string]any {
	out := make(map[string]any, len(changed))
	for name, c := range changed {
		out[name] = []string{c.Was, c.Is}
	}
	return out
}

// OperatorNames are the names of the operators by id, or their addresses where they have none.
func OperatorNames(ctx context.Context, q *sql.Queries) (map[string]string, error) {
	rows, err := q.ConsoleOperators(ctx)
	names := make(map[string]string, len(rows))
	for _, o := range rows {
		names[id.Operator.Format(o.ID)] = cmp.Or(o.Name, o.Email)
	}
	return names, err
}
