package bulk

// Sends reports whether a job of this kind makes new deliveries.
func (k Kind) Sends() bool { return k == Replay || k == ReplayMissing }

// Outcome is what became of the deliveries that a job made.
type Outcome struct {
	Made, Delivered, Failed, Canceled, Waiting int64
	Exact                                      bool // false: there are more, and these are the first ones alone
}
