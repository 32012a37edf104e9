package dashboard

import (
	"net/http"
	"strings"

	"posthorn/db"
	"posthorn/db/subscriptions"
	"posthorn/domain/id"
	rules "posthorn/domain/mcp"
	"posthorn/handlers"
	"posthorn/handlers/mcp"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) mcpAccessView(c *handlers.Call, of rules.Access) pages.MCPAccessView {
	resource := mcp.Resource(a.BaseURL, c.Actor.Tenant)
	return pages.MCPAccessView{
		Shell:    c.Shell("Sign-in of AI clients", "subscriptions"),
		List:     path(c, "/subscriptions"),
		Root:     path(c, "/subscriptions/access"),
		Resource: resource,
		Fields: []components.FieldProps{
			{
				Name:        "issuer",
				Label:       "Issuer",
				Value:       of.Issuer,
				Placeholder: "https://login.example.com",
				Optional:    true,
				Mono:        true,
				Hint:        "The authorization server of your product, as it names itself. Leave it empty to accept API keys only.",
			},
			{
				Name:        "audience",
				Label:       "Audience",
				Value:       of.Audience,
				Placeholder: resource,
				Optional:    true,
				Mono:        true,
				Hint:        "What tokens must have as aud. Leave it empty for the server's address.",
			},
			{
				Name:        "claim",
				Label:       "Required claim",
				Value:       of.Claim,
				Placeholder: "org_id",
				Optional:    true,
				Mono:        true,
				Width:       "medium",
				Hint:        "If your server issues tokens for several customers, a claim that tells them apart.",
			},
			{Name: "claim_value", Label: "Value of the claim", Value: of.Value, Placeholder: "acme", Optional: true, Mono: true, Width: "medium"},
		},
		Hosts: components.FieldProps{
			Name:     "message_id_hosts",
			Label:    "Hosts that need the message's id",
			Value:    strings.Join(of.MessageIDHosts, "\n"),
			Optional: true,
			Mono:     true,
			Rows:     max(3, len(of.MessageIDHosts)+1),
			Hint:     "One per line. Requests to them have the message's id as webhook-id. All others have the event's id, as ChatGPT and the AI SDK expect. Applies to new subscriptions.",
		},
	}
}

func (a *dashboard) mcpAccess(c *handlers.Call) (of rules.Access, err error) {
	err = c.Tx(func(q *db.Tx) (err error) {
		of, err = subscriptions.Access(c.Ctx(), q, c.Actor.Tenant)
		return err
	})
	return of, err
}

func (a *dashboard) showMCPAccess(c *handlers.Call) error {
	of, err := a.mcpAccess(c)
	if err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.MCPAccess(a.mcpAccessView(c, of)))
}

// changeMCPAccess saves the settings after the issuer responded with its metadata.
func (a *dashboard) changeMCPAccess(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	was, err := a.mcpAccess(c)
	if err != nil {
		return err
	}
	given := rules.Access{
		Issuer:         form.Get("issuer"),
		Audience:       form.Get("audience"),
		Claim:          form.Get("claim"),
		Value:          form.Get("claim_value"),
		MessageIDHosts: strings.Fields(form.Get("message_id_hosts")),
	}
	to, err := given.Check()
	if err == nil && to.Issuer != "" && to.Issuer != was.Issuer {
		err = a.OpenID.CheckAuthority(c.Ctx(), a.Egress, to.Issuer, a.Log.With("tenant", id.Tenant.Format(c.Actor.Tenant)))
	}
	if err == nil {
		err = c.Tx(func(q *db.Tx) error { return subscriptions.SetAccess(c.Ctx(), q, c.Actor.Tenant, to, c.Author()) })
	}
	if err == nil {
		return c.Done(path(c, "/subscriptions/access"), "Saved. It applies within seconds.")
	}
	if err := handlers.NotInput(err); err != nil {
		return err
	}
	v := a.mcpAccessView(c, given)
	v.Refuse(handlers.WrongFields(err))
	return c.Render(handlers.Status(err), pages.MCPAccess(v))
}
