package admin

import (
	"net/http"

	"posthorn/handlers"
	"posthorn/views/console"
)

// showHomes shows the state of each home.
func (a *admin) showHomes(c *handlers.Call) error {
	v := console.HomesView{Shell: c.Shell("Homes", "homes"), Alone: a.Homes == nil}
	if a.Homes != nil {
		for _, s := range a.Homes() {
			line := console.HomeLine{Seen: s, Path: Root}
			if !s.Here {
				line.Path = s.URL.String() + Root
			}
			v.Homes = append(v.Homes, line)
		}
	}
	return c.Render(http.StatusOK, console.Homes(v))
}
