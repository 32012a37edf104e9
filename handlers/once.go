package handlers

import (
	"encoding/json"
	"errors"
	"time"

	"posthorn/db/sql"
	"posthorn/domain/id"
)

// onceFor is how long a session keeps what a page is to show. The redirect to the page follows at once.
const onceFor = 10 * time.Minute

// kept is what a session keeps for a page that shows it a single time.
type kept struct {
	Page  string          `json:"page"`
	At    time.Time       `json:"at"`
	Value json.RawMessage `json:"value"`
}

var errNothingSeals = errors.New("no master key is configured to seal what a page shows once")

// KeepOnce keeps a value for one page of the caller's session. A form that makes a secret redirects to that page, so that
// reloading it repeats nothing. The value is sealed for the session; the next KeepOnce replaces it.
func (c *Call) KeepOnce(page string, value any) error {
	return c.KeepOnceFor(c.Actor.Session.ID, page, value)
}

// KeepOnceFor is KeepOnce for a session that this very request began.
func (c *Call) KeepOnceFor(session id.UUID, page string, value any) error {
	if c.kit.keys == nil {
		return errNothingSeals
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(kept{Page: page, At: c.kit.now(), Value: raw})
	if err != nil {
		return err
	}
	sealed := c.kit.keys.Seal(plain, id.UUID{}, session)
	return c.kit.sessions.db.Account(c.Ctx(), func(q *sql.Queries) error {
		return q.SetSessionOnce(c.Ctx(), sql.SetSessionOnceParams{ID: session, Once: sealed})
	})
}

// TakeOnce reads what KeepOnce kept for a page and forgets it. It is false where nothing is kept for this page, and where
// somebody has read it already.
func (c *Call) TakeOnce(page string, into any) (bool, error) {
	if c.Actor.Session == nil || c.kit.keys == nil || c.Fragment() || c.GetBool(headKey) {
		return false, nil
	}
	row, err := c.session(c.Actor.Session.Kind)
	if err != nil || row == nil || len(row.Once) == 0 {
		return false, err
	}
	var found kept
	plain, err := c.kit.keys.Open(row.Once, id.UUID{}, row.ID)
	if err != nil {
		return false, nil // sealed under a master key that was removed since
	}
	if err := json.Unmarshal(plain, &found); err != nil {
		return false, err
	}
	if found.Page != page {
		return false, nil
	}
	var taken int64
	err = c.kit.sessions.db.Account(c.Ctx(), func(q *sql.Queries) error {
		taken, err = q.TakeSessionOnce(c.Ctx(), sql.TakeSessionOnceParams{ID: row.ID, Once: row.Once})
		return err
	})
	if err != nil || taken == 0 || c.kit.now().Sub(found.At) > onceFor {
		return false, err
	}
	c.Uncompressed()
	return true, json.Unmarshal(found.Value, into)
}
