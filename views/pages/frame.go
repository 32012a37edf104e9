package pages

// Frame is what stands around a page's content.
type Frame struct {
	Title      string
	Tenant     string // its name; empty outside tenants
	TenantID   string
	Person     string // who is signed in; empty: nobody
	Role       string
	Active     string   // the navigation's item
	Flashes    []string // what was just done
	Theme      string   // light, dark, or empty
	Accent     string   // #rrggbb, or empty
	Brand      string   // in Posthorn's place, behind a portal link
	ReturnURL  string
	StyleSheet string
}
