package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"posthorn/db"
	"posthorn/domain/home"
	"posthorn/handlers"
	"posthorn/views/console"
)

// Homes gives the console the state of all homes.
type Homes interface {
	// States returns the homes, this one first. It takes two seconds at most.
	States(ctx context.Context) []home.Seen
	// Find finds tenants in the other homes, and names those that don't respond. It takes two seconds at most.
	Find(ctx context.Context, text string) (found []home.Found, silent []string)
}

// showHomes shows the state of each home.
func (a *admin) showHomes(c *handlers.Call) error {
	v := console.HomesView{Shell: c.Shell("Homes", "homes"), Alone: a.Homes == nil}
	if a.Homes != nil {
		for _, s := range a.Homes.States(c.Ctx()) {
			v.Homes = append(v.Homes, console.HomeLine{
				Seen: s,
				Path: atHome(Root, s.Name),
				Old: s.Last.Counts != nil &&
					a.Now().Sub(s.CountsAt) > time.Minute,
			})
		}
	}
	return c.Render(http.StatusOK, console.Homes(v))
}

// atHome is the address of a page of the console of a home.
func atHome(path, name string) string { return path + "?" + url.Values{"home": {name}}.Encode() }

// elsewhere adds to a list of tenants the results from other homes. If only one home has the searched id, to is that
// tenant's page.
func (a *admin) elsewhere(c *handlers.Call, v *console.TenantsView, missing error) (to string) {
	if a.Homes == nil || v.Part == "" {
		return ""
	}
	found, silent := a.Homes.Find(c.Ctx(), v.Part)
	v.Silent = silent
	for _, f := range found {
		path := atHome(Root+"/tenants/"+f.ID, f.Home)
		if db.IsMissing(missing) && (f.ID == v.Part || f.External == v.Part) && len(found) == 1 {
			return path
		}
		v.Elsewhere = append(v.Elsewhere, console.FoundLine{Found: f, Path: path})
	}
	return ""
}
