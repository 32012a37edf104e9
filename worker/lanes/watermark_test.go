package lanes

import (
	"testing"

	"pgregory.net/rapid"
)

// transaction is a transaction of the model: it takes its id, draws from the sequence, and ends.
type transaction struct {
	xid   int64 // 0: has none yet
	drawn []int64
	ended bool
}

// model is the part of PostgreSQL that the watermark depends on.
type model struct {
	nextXid, top int64
	running      []*transaction
	committed    map[int64]bool // rows that a snapshot taken now would show
	rows         map[int64]bool // rows that are or will be committed
}

// oldest models pg_snapshot_xmin: the smallest id of a running transaction, or the next one to be assigned.
func (m *model) oldest() int64 {
	o := m.nextXid
	for _, t := range m.running {
		if t.xid != 0 {
			o = min(o, t.xid)
		}
	}
	return o
}

func (m *model) number(t *transaction) {
	if t.xid == 0 {
		t.xid = m.nextXid
		m.nextXid++
	}
}

// reader is the worker's own transaction in ReadLanes; other steps can come between any two of its steps.
type reader struct {
	step             int
	own              *transaction
	top, xid, oldest int64
	settled          int64
	snapshot         map[int64]bool
}

// checkWatermark runs transactions and readers in any order. It fails if a reader did not see a row up to its watermark
// that was committed later. faulty transactions draw before they have an id, which they must not.
func checkWatermark(t *rapid.T, faulty bool) (violated bool) {
	m := &model{nextXid: 100, committed: map[int64]bool{}, rows: map[int64]bool{}}
	var h Watermark
	var r reader
	blind := map[int64]bool{} // numbers that were settled for some reader, which did not see them
	run := func(tx *transaction, commit bool) {
		tx.ended = true
		for i, other := range m.running {
			if other == tx {
				m.running = append(m.running[:i], m.running[i+1:]...)
				break
			}
		}
		if !commit {
			return
		}
		for _, n := range tx.drawn {
			m.committed[n] = true
			if blind[n] {
				violated = true
			}
		}
	}
	read := func() {
		switch r.step {
		case 0:
			r = reader{own: &transaction{}, top: m.top}
			m.running = append(m.running, r.own)
		case 1:
			m.number(r.own)
			r.xid = r.own.xid
		case 2:
			r.oldest = m.oldest()
		case 3:
			r.snapshot = make(map[int64]bool, len(m.committed))
			for n := range m.committed {
				r.snapshot[n] = true
			}
			r.settled = h.Observe(r.top, r.xid, r.oldest)
			for n := int64(1); n <= r.settled; n++ {
				if !r.snapshot[n] {
					blind[n] = true // correct, unless it is committed from now on
				}
			}
		case 4:
			run(r.own, true)
			r.step = -1
		}
		r.step++
	}
	t.Repeat(map[string]func(*rapid.T){
		"begin": func(t *rapid.T) {
			if len(m.running) > 6 {
				t.Skip("enough")
			}
			m.running = append(m.running, &transaction{})
		},
		"number": func(t *rapid.T) { m.number(m.pick(t, r.own)) },
		"draw": func(t *rapid.T) {
			tx := m.pick(t, r.own)
			if !faulty {
				m.number(tx)
			}
			m.top++
			tx.drawn = append(tx.drawn, m.top)
		},
		"end": func(t *rapid.T) {
			tx := m.pick(t, r.own)
			if faulty {
				m.number(tx)
			}
			run(tx, rapid.Bool().Draw(t, "commit"))
		},
		"read": func(*rapid.T) { read() },
	})
	return violated
}

// pick selects a running transaction that is not the reader's.
func (m *model) pick(t *rapid.T, own *transaction) *transaction {
	var others []*transaction
	for _, tx := range m.running {
		if tx != own {
			others = append(others, tx)
		}
	}
	if len(others) == 0 {
		t.Skip("none runs")
	}
	return others[rapid.IntRange(0, len(others)-1).Draw(t, "transaction")]
}

func TestNoRowUpToTheWatermarkIsCommittedUnseen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if checkWatermark(t, false) {
			t.Fatal("a row was committed below the horizon of a reader that did not see it")
		}
	})
}

// The watermark depends on the rule that every transaction has its id before it draws a number of the queue: the check
// must notice a violation.
func TestTheWatermarksCheckNoticesADrawBeforeTheNumber(t *testing.T) {
	t.Parallel()
	found := false
	for seed := range 200 {
		// A separate run, which neither fails nor shrinks.
		gen := rapid.Custom(func(t *rapid.T) bool { return checkWatermark(t, true) })
		if found = gen.Example(seed); found {
			break
		}
	}
	if !found {
		t.Error("the check would not notice")
	}
}

func TestTheWatermarkMovesUpAndIsBounded(t *testing.T) {
	t.Parallel()
	var h Watermark
	if got := h.Observe(10, 100, 100); got != 10 {
		t.Errorf("settled up to %d with nothing running, want 10", got)
	}
	// A transaction that began before and does not end.
	for i := range int64(10 * maxSamples) {
		if got := h.Observe(11+i, 101+i, 50); got != 10 {
			t.Fatalf("settled up to %d past a transaction that runs", got)
		}
	}
	if len(h.samples) > maxSamples {
		t.Errorf("%d samples are kept", len(h.samples))
	}
	last := int64(10*maxSamples - 1)
	if got := h.Observe(12+last, 102+last, 102+last); got != 12+last {
		t.Errorf("settled up to %d after its end, want %d", got, 12+last)
	}
	if got := h.Observe(5, 200000000, 200000000); got != 12+last {
		t.Errorf("the horizon went back to %d", got)
	}
}
