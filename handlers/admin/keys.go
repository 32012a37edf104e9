package admin

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/a-h/templ"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
	"posthorn/views/pages"
)

// maxPlatformKeys is how many platform keys the page lists.
const maxPlatformKeys = 200

func (a *admin) keysView(c *handlers.Call, form url.Values, wrong map[string]string) (v console.KeysView, err error) {
	v = console.KeysView{
		Now: a.Now(),
		Name: components.FieldProps{
			Name:        "name",
			Label:       "Name",
			Value:       form.Get("name"),
			Error:       wrong["name"],
			Required:    true,
			MaxLength:   account.MaxName,
			Placeholder: "Billing service",
			Hint:        "What will use this key? Helps you know which one to revoke.",
		},
		Expires: components.FieldProps{
			Name:     "expires_at",
			Label:    "Expires (UTC)",
			Type:     "datetime-local",
			Attrs:    templ.Attributes{"data-utc": true},
			Value:    form.Get("expires_at"),
			Error:    wrong["expires_at"],
			Optional: true,
			Width:    "medium",
			Hint:     "Leave empty for a key that never expires.",
		},
		Wrong: wrong["scopes"],
	}
	for _, s := range access.PlatformScopes() {
		v.Scopes = append(v.Scopes, components.Option{
			Value:    string(s),
			Label:    string(s),
			Hint:     pages.ScopeHints[s],
			Selected: slices.Contains(form["scopes"], string(s)),
		})
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
