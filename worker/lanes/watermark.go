package lanes

// Watermark answers one question: up to which number of the queue's sequence has every row been committed or rolled
// back? The next read of a lane then starts there instead of at its head. That matters when a backup holds a snapshot
// and a million deleted rows are between the head and the first live row.
//
// A number alone does not answer it: a number is drawn before its transaction commits, so a greater number can be
// visible first. But a transaction has an id of its own (xid) before it draws. So a sample takes the sequence's top,
// and then its own xid: every transaction that drew up to that top has a smaller xid. Once the oldest running xid has
// passed the sample's, all of them have ended, and a statement that starts later sees everything they committed.
type Watermark struct {
	samples []sample // not yet settled, oldest first
	settled int64
}

type sample struct{ top, xid int64 }

// maxSamples bounds the samples that collect while a transaction runs for hours. The newest samples matter most.
const maxSamples = 4096

// Settled is the number up to which the last reader saw everything.
func (w *Watermark) Settled() int64 { return w.settled }

// Observe adds a sample, and the oldest xid that ran when the sample's reader started to read its rows. It returns the
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
