package home

import (
	"cmp"
	"fmt"
	"time"
)

// Move is a move of a tenant that is not finished, as one of its two homes knows it.
type Move struct {
	Tenant    string // its id
	Name      string // empty: the tenant is not in this home yet
	In        bool   // the tenant comes to this home; otherwise it leaves
	Home      string // the other one
	Closed    bool   // it accepts nothing until the move is finished or rolled back
	StartedAt time.Time
	StoppedAt time.Time // since when no command runs the move, as far as it is known; zero: one runs
	KeptLog   int64     // bytes of its log that this home's PostgreSQL keeps for the move
}

// How long a move can be without its command before operators are alerted. Who ends a command by mistake starts it
// again within minutes.
const (
	stoppedLong   = time.Hour
	stoppedClosed = time.Minute
)

// Overdue reports whether operators are alerted of a move: no command has run it for too long.
func (m Move) Overdue(now time.Time) bool {
	bound := stoppedLong
	if m.Closed {
		bound = stoppedClosed
	}
	return !m.StoppedAt.IsZero() && now.Sub(m.StoppedAt) >= bound
}

// Who is the tenant as this home knows it.
func (m Move) Who() string { return cmp.Or(m.Name, m.Tenant) }

// Title says which move has stopped, and what that means for the tenant.
func (m Move) Title() string {
	text := "The move of " + m.Who() + " to the home " + m.Home + " has stopped"
	if m.In {
		text = "The move of " + m.Who() + " from the home " + m.Home + " has stopped"
	}
	if m.Closed {
		text += ", and the tenant accepts no events"
	}
	return text + "."
}

// Action says how to finish the move, and how to end it.
func (m Move) Action() string {
	if m.In {
		return "In the home " + m.Home + ", run posthorn tenant move " + m.Tenant + " again to finish it, or with --rollback to delete what was copied to this home."
	}
	text := "Run posthorn tenant move " + m.Tenant + " --to " + m.Home + " to finish it, or with --rollback to keep the tenant here."
	if m.KeptLog > 0 {
		text += fmt.Sprintf(" Until then PostgreSQL keeps its log for it, %d MB so far, and more until its disk is full.", (m.KeptLog+1e6-1)/1e6)
	}
	return text
}
