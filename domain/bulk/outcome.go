package bulk

import "fmt"

// Sends reports whether a job of this kind makes new deliveries.
func (k Kind) Sends() bool { return k == Replay || k == ReplayMissing }

// Outcome is what became of the deliveries that a job made.
type Outcome struct {
	Made, Delivered, Failed, Canceled, Waiting int64
	Exact                                      bool // false: there are more, and these are the first ones alone
}

// Text says how many of the deliveries of a job were delivered. expected is how many it is to make; over says that it
// makes no more.
func (o Outcome) Text(expected int64, over bool) string {
	total := max(o.Made, expected)
	if over {
		total = o.Made
	}
	text := fmt.Sprintf("%d of %d delivered", o.Delivered, total)
	if !over || o.Waiting > 0 {
		text += " yet"
	}
	if o.Failed > 0 {
		text += fmt.Sprintf(", %d failed again", o.Failed)
	}
	if o.Canceled > 0 {
		text += fmt.Sprintf(", %d canceled", o.Canceled)
	}
	return text
}
