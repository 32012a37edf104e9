package admin

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/id"
	"posthorn/domain/settings"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// paletteTenants bounds the tenants that the palette lists by name. The search finds the others.
const paletteTenants = 200

// palette is the content of the command palette: the console's pages, frequent actions, and the newest tenants.
func (a *admin) palette(c *handlers.Call) error {
	tenants := layout.PaletteGroup{Label: "Tenants"}
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		found, _, err := accounts.ListTenants(c.Ctx(), q, show.Range{Limit: paletteTenants})
		for _, t := range found.Rows {
			tenants.Entries = append(tenants.Entries, layout.PaletteEntry{
				Label: t.Name,
				Note:  id.Tenant.Format(t.ID),
				Href:  tenantPath(t.ID),
				Icon:  icons.Building,
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	actions := layout.PaletteGroup{
		Label: "Actions",
		Entries: []layout.PaletteEntry{
			{Label: "Pause dispatch", Href: Root + "/pauses", Icon: icons.Pause, Words: "stop host maintenance"},
			{Label: "Failed deliveries of all tenants", Href: Root + "/deliveries?status=failed", Icon: icons.Send},
		},
	}
	return c.Render(http.StatusOK, layout.Palette(c.Shell("", ""), []layout.PaletteGroup{actions, tenants, paletteSettings()}))
}

// paletteSettings are the platform's settings by their labels.
func paletteSettings() layout.PaletteGroup {
	g := layout.PaletteGroup{Label: "Settings"}
	for _, f := range settings.Fields() {
		g.Entries = append(g.Entries, layout.PaletteEntry{
			Label: f.Label,
			Note:  f.Group,
			Words: f.Name,
			Href:  Root + "/settings#f-" + f.Name,
			Icon:  icons.Sliders,
		})
	}
	return g
}
