package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/pages"
)

func (a *dashboard) keyRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/keys", access.ManageKeys, a.listKeys),
		page("GET", "/keys/new", access.ManageKeys, a.newKey),
		page("POST", "/keys", access.ManageKeys, a.createKey),
		page("GET", "/keys/:key_id/created", access.ManageKeys, a.showNewKey),
		page("POST", "/keys/:key_id/revoke", access.ManageKeys, a.revokeKey),
	}
}

func (a *dashboard) listKeys(c *handlers.Call) error {
	l := handlers.List{Name: "keys", Of: id.Key, Rows: rows}
	found, err := handlers.ReadList(c, l, c.Tx, func(q *db.Tx, p handlers.Page) (show.Page[show.Key], error) {
		return accounts.ListKeys(c.Ctx(), q, c.Actor.Tenant, p.Range)
	})
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Keys(pages.KeysView{
		Shell:   c.Shell("API keys", "keys"),
		Root:    path(c, ""),
		Rows:    found.Rows,
		Newer:   found.Newer,
		Older:   found.Older,
		Manages: c.Actor.May(access.ManageKeys),
		Now:     a.Now(),
	}))
}

func (a *dashboard) newKey(c *handlers.Call) error {
	return a.showKeyForm(c, http.StatusOK, url.Values{"scopes": {string(access.EventsWrite)}}, nil)
}

func (a *dashboard) showKeyForm(c *handlers.Call, status int, form url.Values, wrong map[string]string) error {
	scopes := slices.DeleteFunc(access.TenantScopes(), func(s access.Scope) bool { return !c.Actor.May(access.GrantNeeds(s)) })
	v := pages.KeyFormView{
		Root:      path(c, ""),
		Closed:    !c.Actor.May(access.ManageKeys),
		KeyFields: pages.NewKeyFields(form, wrong, "Production", scopes),
	}
	v.Shell = c.Shell("Create API key", "keys")
	return c.Render(status, pages.KeyForm(v))
}

// createKey creates a key. The next page shows its text once.
func (a *dashboard) createKey(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	wanted, err := handlers.FormKey(form, &c.Actor.Tenant, a.Now())
	if err == nil {
		err = mayGrant(c.Actor, wanted.Scopes)
	}
	if err != nil {
		return a.showKeyForm(c, http.StatusBadRequest, form, handlers.WrongFields(err))
	}
	var key show.Key
	var text string
	err = c.Tx(func(q *db.Tx) error {
		key, text, err = accounts.CreateKey(c.Ctx(), q, wanted, accounts.MaxKeys, c.Author())
		return err
	})
	if fault.Is(err, "keys_limit") {
		return a.showKeyForm(c, http.StatusConflict, form, handlers.WrongFields(err))
	}
	if err != nil {
		return err
	}
	created := path(c, "/keys/"+id.Key.Format(key.ID)+"/created")
	if err := c.KeepOnce(created, newKeyText{Name: key.Name, Text: text}); err != nil {
		return err
	}
	return c.Redirect(created)
}

// mayGrant refuses scopes that allow a key more than its creator.
func mayGrant(actor handlers.Actor, scopes access.Scopes) error {
	for _, s := range scopes {
		if !actor.May(access.GrantNeeds(s)) {
			return fault.InvalidField("scopes", "scope_beyond_own", fmt.Sprintf(
				"Only owners and admins can create a key with %s. Leave it out, or ask one of them.", s))
		}
	}
	return nil
}

// newKeyText is what a session keeps until the next page shows it.
type newKeyText struct{ Name, Text string }

// showNewKey shows a new key once. Later there is only the list.
func (a *dashboard) showNewKey(c *handlers.Call) error {
	keyID := c.PathID("key_id")
	err := c.Tx(func(q *db.Tx) error {
		_, err := accounts.ReadKey(c.Ctx(), q, c.Actor.Tenant, keyID)
		return err
	})
	if err != nil {
		return err
	}
	var made newKeyText
	found, err := c.TakeOnce(path(c, "/keys/"+id.Key.Format(keyID)+"/created"), &made)
	if err != nil {
		return err
	}
	if !found {
		return c.Redirect(path(c, "/keys"))
	}
	v := pages.KeyMadeView{Root: path(c, ""), Name: made.Name, Text: made.Text}
	v.Shell = c.Shell("Copy your new key", "keys")
	return c.Render(http.StatusOK, pages.KeyMade(v))
}

// revokeKey revokes a key.
func (a *dashboard) revokeKey(c *handlers.Call) error {
	keyID := c.PathID("key_id")
	var key show.Key
	err := c.Tx(func(q *db.Tx) (err error) {
		key, err = accounts.EndKey(c.Ctx(), q, c.Actor.Tenant, keyID, c.Author())
		return err
	})
	if err != nil {
		return err
	}
	return c.Done(path(c, "/keys"), "Revoked: "+key.Name+".")
}
