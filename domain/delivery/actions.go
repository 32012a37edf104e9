package delivery

// CanRetryNow reports whether a delivery in this state can be sent at once instead of at its time. A held one can't:
// its endpoint receives nothing until it is resumed.
func CanRetryNow(s Status) bool { return s == Pending || s == Retrying }

// CanCancel reports whether a delivery in this state can be canceled.
func CanCancel(s Status) bool { return s == Pending || s == Retrying || s == Held }

// CanReplay reports whether a delivery in this state can be sent again as a new delivery.
func CanReplay(s Status) bool { return s.Terminal() }

// CanArchive reports whether a delivery in this state can be hidden from lists, or shown again.
func CanArchive(s Status) bool { return s.Terminal() }
