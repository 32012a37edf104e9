package admin

import (
	"net/http"
	"net/url"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/views/console"
	"posthorn/views/pages"
)

// maxPlatformKeys is how many platform keys the page lists.
const maxPlatformKeys = 200

func (a *admin) keysView(c *handlers.Call, form url.Values, wrong map[string]string) (v console.KeysView, err error) {
	v = console.KeysView{
		Now:       a.Now(),
		KeyFields: pages.NewKeyFields(form, wrong, "Billing service", access.PlatformScopes()),
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		v.Keys, err = accounts.PlatformKeys(c.Ctx(), q, maxPlatformKeys)
		return err
	})
	return v, err
}

func (a *admin) listKeys(c *handlers.Call) error {
	v, err := a.keysView(c, url.Values{"scopes": {string(access.EventsWrite)}}, nil)
	if err != nil {
		return err
	}
	var made newKey
	if _, err := c.TakeOnce(keysPath, &made); err != nil {
		return err
	}
	v.New, v.NewName = made.Text, made.Name
	v.Shell = c.Shell("Platform keys", "keys")
	return c.Render(http.StatusOK, console.Keys(v))
}

const keysPath = Root + "/keys"

// newKey is what a session keeps until the next page shows it.
type newKey struct{ Name, Text, Path string }

// createKey creates a platform key. The next page shows its text once.
func (a *admin) createKey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	wanted, wrong := handlers.FormKey(form, nil, a.Now())
	if wrong != nil {
		v, err := a.keysView(c, form, handlers.WrongFields(wrong))
		if err != nil {
			return err
		}
		v.Shell = c.Shell("Platform keys", "keys")
		return c.Render(handlers.Status(wrong), console.Keys(v))
	}
	made := newKey{Name: wanted.Name}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		_, made.Text, err = accounts.CreateKey(c.Ctx(), q, wanted, 0, c.Author())
		return err
	})
	if err == nil {
		err = c.KeepOnce(keysPath, made)
	}
	if err != nil {
		return err
	}
	return c.Redirect(keysPath)
}

// revokeKey revokes a platform key. If two operators revoke it together, one does, and both see that it is revoked.
func (a *admin) revokeKey(c *handlers.Call) error {
	keyID := c.PathID("key_id")
	key, err := accounts.EndPlatformKey(c.Ctx(), a.DB, keyID, c.Author())
	if fault.Is(err, fault.ErrNotFound.Code) {
		return fault.New(fault.NotFound, fault.ErrNotFound.Code, "Platform key not found.")
	}
	if err != nil {
		return err
	}
	return c.Done(Root+"/keys", "Revoked: "+key.Name+".")
}
