package worker

// horizon answers one question: up to which number of the queue's sequence has every row either been committed or been
// given up? A lane may be read from there on instead of from its head, which matters when a backup holds a snapshot and a
// million deleted rows lie between the head and the first that lives.
//
// A number alone does not say: it is drawn before its transaction commits, so that a greater one may be visible first.
// But a transaction has its own number (xid) before it draws. So a sample takes the sequence's top, then an xid of its
// own: whoever drew up to that top has a smaller xid. Once the oldest running xid has passed the sample's, all of them
// have ended, and a statement that begins later sees whatever they committed.
type horizon struct {
	samples []sample // not yet settled, oldest first
	settled int64
}

type sample struct{ top, xid int64 }

// maxSamples bounds what a transaction that runs for hours leaves behind; the newest matter most.
const maxSamples = 4096

// observe adds a sample and the oldest xid that ran when the sample's reader began to read its rows. It returns the number
// up to which that reader saw everything.
func (h *horizon) observe(top, xid, oldest int64) int64 {
	if len(h.samples) == maxSamples {
		h.samples = append(h.samples[:0], h.samples[maxSamples/2:]...)
	}
	h.samples = append(h.samples, sample{top, xid})
	n := 0
	for n < len(h.samples) && h.samples[n].xid <= oldest {
		h.settled = max(h.settled, h.samples[n].top)
		n++
	}
	h.samples = append(h.samples[:0], h.samples[n:]...)
	return h.settled
}
