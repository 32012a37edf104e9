package lanes

// Watermark answers one question: up to which number of the queue's sequence has every row been committed or rolled
// back? A lane is then read from there on instead of from its head. That matters when a backup holds a snapshot and a
// million deleted rows lie between the head and the first live row.
//
// A number alone does not answer it: it is drawn before its transaction commits, so a greater number can be visible
// first. But a transaction has a number of its own (xid) before it draws. So a sample takes the sequence's top, and
// then an xid of its own: every transaction that drew up to that top has a smaller xid. Once the oldest running xid has
// passed the sample's, all of them have ended, and a statement that starts later sees whatever they committed.
type Watermark struct {
	samples []sample // not yet settled, oldest first
	settled int64
}

type sample struct{ top, xid int64 }

// maxSamples bounds what a transaction that runs for hours leaves behind. The newest samples matter most.
const maxSamples = 4096

// Settled is the number up to which the last reader saw everything.
func (w *Watermark) Settled() int64 { return w.settled }

// Observe adds a sample, and the oldest xid that ran when the sample's reader began to read its rows. It returns the
// number up to which that reader saw everything.
func (w *Watermark) Observe(top, xid, oldest int64) int64 {
	if len(w.samples) == maxSamples {
		w.samples = append(w.samples[:0], w.samples[maxSamples/2:]...)
	}
	w.samples = append(w.samples, sample{top, xid})
	n := 0
	for n < len(w.samples) && w.samples[n].xid <= oldest {
		w.settled = max(w.settled, w.samples[n].top)
		n++
	}
	w.samples = append(w.samples[:0], w.samples[n:]...)
	return w.settled
}
