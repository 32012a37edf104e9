package lanes

// window is the part of a lane's queue that is in memory, and where the next read starts.
type window struct {
	rows      map[int64]*Job // by seq: read ahead, in flight, or waiting to be recorded
	done      []int64        // recorded during a read that can have seen them
	floor     int64          // everything up to here has been read
	dropBelow int64          // held rows up to here are dropped by a job: no read takes them
	read      readState
	wanted    bool // a read would find rows: some were announced, or the last read did not reach the end
}

// readState is the state of a lane's read.
type readState uint8

const (
	notReading  readState = iota
	reading               // in progress
	readLowered           // in progress, and the floor was lowered after it started: the floor stays where it is
	readStale             // in progress, but outdated: its rows are ignored
)

func (w *window) isReading() bool { return w.read != notReading }

// wantsRead reports whether a read should start.
func (w *window) wantsRead() bool { return w.wanted && !w.isReading() }

// lower makes the next read start at seq or before.
func (w *window) lower(seq int64) {
	w.floor = min(w.floor, seq-1)
	w.wanted = true
	if w.read == reading {
		w.read = readLowered // whatever the floor is, this read must not raise it over seq
	}
}

// restart makes the next read start at the head. A read in progress is outdated.
func (w *window) restart() {
	w.lower(1)
	if w.isReading() {
		w.read = readStale
	}
}

// forget drops a row whose outcome is recorded. If a read is in progress, which can have started before, the row stays
// known until the next read.
func (w *window) forget(seq int64) {
	if w.isReading() {
		w.done = append(w.done, seq)
		return
	}
	delete(w.rows, seq)
}

// begin marks a read as in progress and appends the rows above the floor that it must leave out.
func (w *window) begin(known []int64) []int64 {
	for _, seq := range w.done {
		delete(w.rows, seq)
	}
	w.done = w.done[:0]
	w.read, w.wanted = reading, false
	for seq := range w.rows {
		if seq > w.floor {
			known = append(known, seq)
		}
	}
	return known
}

// beginAt is the floor of a read for one requested row. The next read starts where this one would have.
func (w *window) beginAt(seq int64) (floor int64) {
	w.read = readLowered
	return seq - 1
}

// end ends a read: last is the greatest number it read, complete says that nothing is left above it, settled is the
// watermark of the read.
func (w *window) end(last int64, complete bool, settled int64) {
	was := w.read
	w.read = notReading
	w.wanted = w.wanted || !complete || was != reading
	if was != reading {
		return
	}
	if !complete {
		settled = min(settled, last)
	}
	w.floor = max(w.floor, settled)
}

// abandon ends a read that failed.
func (w *window) abandon() { w.read, w.wanted = notReading, true }

// held is how many rows of the window count as memory.
func (w *window) held() int { return len(w.rows) - len(w.done) }

// idle reports whether nothing is in memory and nothing has to be read.
func (w *window) idle() bool { return w.held() == 0 && !w.isReading() && !w.wanted }
