package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/domain/egress"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

const egressPath = Root + "/egress"

// egressView is the list of proxies, with the form of one: as stored, or as it was typed.
func (a *admin) egressView(c *handlers.Call, owner string, typed url.Values, wrong map[string]string) (v console.EgressView, err error) {
	v.Root, v.Now = egressPath, a.Now()
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		v.Proxies, err = endpoints.Proxies(c.Ctx(), q)
		return err
	})
	if err != nil {
		return v, err
	}
	if typed == nil {
		typed = storedProxy(owner, v.Proxies)
	}
	field := func(name, label, hint string) components.FieldProps {
		return components.FieldProps{Name: name, Label: label, Hint: hint, Value: typed.Get(name), Error: wrong[name], Complete: "off"}
	}
	v.Owner = field("owner", "Used by", "platform for all tenants, or the id of a tenant that differs.")
	v.Owner.Mono, v.Owner.Required, v.Owner.MaxLength = true, true, 100
	v.Type = field("type", "Type", "")
	for _, t := range egress.ProxyTypes() {
		label := t.Label()
		if t == egress.ProxyDirect {
			label += ", for a tenant"
		}
		v.Types = append(v.Types, components.Option{Value: string(t), Label: label, Selected: typed.Get("type") == string(t)})
	}
	v.Address = field("address", "Address", "Host and port, such as proxy.example.com:3128. List a private address in POSTHORN_EGRESS_PROXY_ALLOW.")
	v.Address.Mono, v.Address.MaxLength = true, 300
	v.Username = field("username", "Username", "")
	v.Password = field("password", "Password", "Encrypted, and never shown. Empty keeps the stored one.")
	v.Username.Optional, v.Password.Optional, v.Password.Type, v.Password.Value, v.Password.Complete = true, true, "password", "", "new-password"
	v.Published = field("published_addresses", "Published addresses", "From which it sends, one per line. Receivers read them in egress.json.")
	v.Published.Optional, v.Published.Mono, v.Published.Rows = true, true, 3
	v.Resolve = components.ChoiceProps{
		Name:    "resolve_names",
		Label:   "The proxy resolves host names",
		Hint:    "Posthorn then can't check the addresses: the proxy itself must refuse those of your own network.",
		Checked: typed.Get("resolve_names") == "true",
	}
	return v, nil
}

// storedProxy are the fields of an owner's proxy as its form has them.
func storedProxy(owner string, all []egress.ProxyStatus) url.Values {
	typed := url.Values{"owner": {owner}, "type": {string(egress.ProxyHTTP)}}
	of, err := egress.ParseProxyOwner("owner", owner)
	i := slices.IndexFunc(all, func(p egress.ProxyStatus) bool { return p.Owner == of })
	if err != nil || i < 0 {
		return typed
	}
	p := all[i]
	typed.Set("type", string(p.Type))
	typed.Set("address", p.Address)
	typed.Set("username", p.Username)
	typed.Set("published_addresses", strings.Join(p.Published, "\n"))
	if p.ResolveNames {
		typed.Set("resolve_names", "true")
	}
	return typed
}

func (a *admin) showEgress(c *handlers.Call) error {
	owner := c.Query("owner")
	if owner == "" {
		owner = egress.PlatformOwner
	}
	v, err := a.egressView(c, owner, nil, nil)
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Egress proxies", "egress")
	return c.Render(http.StatusOK, console.Egress(v))
}

func (a *admin) setEgress(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	owner, err := egress.ParseProxyOwner("owner", strings.TrimSpace(form.Get("owner")))
	if err == nil {
		p := egress.Proxy{
			Owner:        owner,
			Type:         egress.ProxyType(form.Get("type")),
			Address:      form.Get("address"),
			Username:     form.Get("username"),
			Password:     form.Get("password"),
			ResolveNames: form.Get("resolve_names") == "true",
			Published:    strings.FieldsFunc(form.Get("published_addresses"), func(r rune) bool { return strings.ContainsRune(", \r\n\t", r) }),
		}
		err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
			_, err := endpoints.Editor{Keys: a.Keys, By: c.Author()}.SetProxy(c.Ctx(), q, a.Egress, p)
			return err
		})
		if fault.Is(err, fault.ErrNotFound.Code) {
			err = fault.InvalidField("owner", "out_of_range", "There is no such tenant any more.")
		}
	}
	if err == nil {
		return c.Done(egressPath, "Egress proxy saved. Workers use it within seconds.")
	}
	if not := handlers.NotInput(err); not != nil {
		return not
	}
	v, failed := a.egressView(c, "", form, handlers.WrongFields(err))
	if failed != nil {
		return failed
	}
	v.Shell = c.Shell("Egress proxies", "egress")
	return c.Render(handlers.Status(err), console.Egress(v))
}

func (a *admin) removeEgress(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	owner, err := egress.ParseProxyOwner("owner", form.Get("owner"))
	if err != nil {
		return err
	}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		return endpoints.Editor{Keys: a.Keys, By: c.Author()}.RemoveProxy(c.Ctx(), q, owner)
	})
	if err != nil && !fault.Is(err, endpoints.ErrNoProxy.Code) { // somebody else removed it
		return err
	}
	return c.Done(egressPath, "Egress proxy removed. Workers follow within seconds.")
}

// egressOf is the form for the proxy of a tenant.
func egressOf(tenant id.UUID) string {
	return egressPath + "?" + url.Values{"owner": {id.Tenant.Format(tenant)}}.Encode() + "#proxy"
}
