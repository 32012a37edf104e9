package admin

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/domain/home"
	"posthorn/handlers"
	"posthorn/views/console"
)

// showHomes shows the state of each home, and the moves of this one. It asks no other home.
func (a *admin) showHomes(c *handlers.Call) error {
	v := console.HomesView{Shell: c.Shell("Homes", "homes"), Alone: a.Homes == nil}
	if a.Homes != nil {
		var here home.Numbers
		err := a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
			v.Moves, err = accounts.UnfinishedMoves(c.Ctx(), q)
			return err
		})
		if err == nil {
			here, err = endpoints.ReadNumbers(c.Ctx(), a.DB, a.Now())
		}
		if err != nil {
			return err
		}
		for _, s := range a.Homes() {
			line := console.HomeLine{Seen: s, Path: Root}
			if s.Here {
				line.Numbers, line.Known = here, true
			} else {
				line.Path = s.URL.String() + Root
			}
			v.Homes = append(v.Homes, line)
		}
	}
	return c.Render(http.StatusOK, console.Homes(v))
}
