package handlers

import (
	"encoding/json"
	"errors"
	"time"

	"posthorn/db/accounts"
	"posthorn/domain/id"
)

// onceFor is how long a session keeps a value for a page. The redirect to the page follows immediately.
const onceFor = 10 * time.Minute

// kept is a value that a session keeps for a page, which shows it once.
type kept struct {
	Page  string          `json:"page"`
	At    time.Time       `json:"at"`
	Value json.RawMessage `json:"value"`
}

var errNothingSeals = errors.New("no master key is configured to seal what a page shows once")

// KeepOnce keeps a value for one page of the caller's session. A form that creates a secret redirects to that page, so
// that a reload repeats nothing. The value is sealed for the session. The next KeepOnce replaces it.
func (c *Call) KeepOnce(page string, value any) error {
	return c.KeepOnceFor(c.Actor.Session.ID, page, value)
}

// KeepOnceFor is KeepOnce for a session that this request started.
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
	return accounts.KeepOnce(c.Ctx(), c.kit.sessions.db, session, sealed)
}

// TakeOnce reads the value that KeepOnce kept for a page and deletes it. It is false if there is none for this page,
// or if it was read before.
func (c *Call) TakeOnce(page string, into any) (bool, error) {
	if c.Actor.Session == nil || c.kit.keys == nil || c.Fragment() || c.GetBool(headKey) {
		return false, nil
	}
	session, err := c.SignedInAs(c.Actor.Session.Kind)
	if err != nil || session == nil || len(session.Once) == 0 {
		return false, err
	}
	var found kept
	plain, err := c.kit.keys.Open(session.Once, id.UUID{}, session.ID)
	if err != nil {
		return false, nil // sealed under a master key that has been removed
	}
	if err := json.Unmarshal(plain, &found); err != nil {
		return false, err
	}
	if found.Page != page {
		return false, nil
	}
	taken, err := accounts.TakeOnce(c.Ctx(), c.kit.sessions.db, session.ID, session.Once)
	if err != nil || !taken || c.kit.now().Sub(found.At) > onceFor {
		return false, err
	}
	c.Uncompressed()
	return true, json.Unmarshal(found.Value, into)
}
