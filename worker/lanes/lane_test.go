package lanes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

// row is a queue row of the model; once committed it is visible.
type row struct {
	seq       int64
	lane      id.UUID
	dlv       id.UUID
	committed bool
	ready     bool // not scheduled for a retry
	flying    bool // a request is in flight
}

// queueModel models the database and everything around a dispatcher.
type queueModel struct {
	t        *rapid.T
	d        *Dispatcher
	lanes    []id.UUID
	rows     map[int64]*row
	top      int64
	unsaid   []id.UUID // committed, not announced yet
	mark     int64     // before the open transaction of this process
	own      []*row    // of this process, committed and not handed over yet
	flying   []*Job
	ended    []*Job // finished, not recorded yet
	again    map[int64]bool
	reading  *Plan
	found    []Row
	settled  int64
	snapshot bool
	rev      int64
	started  int
}

func newQueueModel(t *rapid.T) *queueModel {
	m := &queueModel{t: t, rows: map[int64]*row{}, again: map[int64]bool{}, rev: 1}
	m.d = New(m.start, func() {}, func(id.UUID) {}, func() bool { return true })
	tenant := db.NewID()
	for range 2 {
		ep := db.NewID()
		m.lanes = append(m.lanes, ep)
		m.d.Install(Lease{EndpointID: ep, TenantID: tenant, Rev: 1}, &Settings{MaxInFlight: 3}, time.Now())
	}
	return m
}

func (m *queueModel) start(j *Job) {
	r := m.rows[j.Seq]
	switch {
	case r == nil:
		m.t.Fatalf("row %d is sent and no longer there", j.Seq)
	case r.flying:
		m.t.Fatalf("row %d is sent twice at once", j.Seq)
	case !r.ready:
		m.t.Fatalf("row %d is sent before its time", j.Seq)
	}
	r.flying = true
	m.started++
	m.flying = append(m.flying, j)
}

func (m *queueModel) insert() {
	m.top++
	m.rows[m.top] = &row{seq: m.top, lane: m.lanes[int(m.top)%len(m.lanes)], dlv: db.NewID(), ready: true}
}

func (m *queueModel) commit(r *row) {
	r.committed = true
	m.unsaid = append(m.unsaid, r.lane)
}

// handOver ends the transaction that started at the mark: its rows go to their lanes, or are announced.
func (m *queueModel) handOver() {
	rows := make([]Fresh, len(m.own))
	for i, r := range m.own {
		rows[i] = Fresh{
			Seq:        r.seq,
			EndpointID: r.lane,
			DeliveryID: r.dlv,
			Event:      &send.Payload{Event: &sql.Event{ID: r.dlv, Data: []byte("{}")}},
		}
	}
	m.d.Wake(m.d.HandOver(m.mark, id.UUID{}, rows))
	m.own, m.mark = nil, 0
}

func (m *queueModel) announce() {
	m.d.Wake(m.unsaid)
	m.unsaid = nil
}

func (m *queueModel) plan() {
	if plan := m.d.Plan(); !plan.Empty() {
		m.reading, m.snapshot = &plan, false
	}
}

// look is the moment of the read's snapshot.
func (m *queueModel) look() {
	m.snapshot, m.found = true, nil
	for i, ep := range m.reading.Endpoints {
		n := int32(0)
		for seq := m.reading.Floors[i] + 1; seq <= m.top && n < m.reading.Limits[i]; seq++ {
			r := m.rows[seq]
			if r == nil || r.lane != ep || !r.committed || !r.ready || slices.Contains(m.reading.Known, seq) {
				continue
			}
			n++
			m.found = append(m.found, Row{Seq: seq, EndpointID: ep, DeliveryID: r.dlv, EventID: r.dlv})
		}
	}
	highest := int64(0)
	for highest < m.top && (m.rows[highest+1] == nil || m.rows[highest+1].committed) {
		highest++
	}
	m.settled = highest
}

func (m *queueModel) take(settled int64) {
	events := map[id.UUID]*send.Payload{}
	for _, r := range m.found {
		events[r.EventID] = &send.Payload{Event: &sql.Event{ID: r.EventID, Data: []byte("{}")}}
	}
	m.d.Take(*m.reading, Found{Rows: m.found, Events: events, Settled: settled})
	m.reading = nil
	m.d.Kick()
}

// finish ends a request; its result waits for the recorder.
func (m *queueModel) finish(i int, again bool) {
	j := m.flying[i]
	m.flying = slices.Delete(m.flying, i, i+1)
	m.ended = append(m.ended, j)
	m.again[j.Seq] = again
	decision := delivery.Decision{Status: delivery.Delivered, Class: delivery.Success}
	if again {
		decision = delivery.Decision{Status: delivery.Retrying, Class: delivery.Neutral}
	}
	if next := m.d.Finish(j, Outcome{Decision: decision, Result: delivery.Result{Status: 200}}, time.Now()).Next; next != nil {
		m.start(next)
	}
}

func (m *queueModel) record() {
	for _, j := range m.ended {
		r := m.rows[j.Seq]
		r.flying = false
		if m.again[j.Seq] {
			r.ready = false
		} else {
			delete(m.rows, j.Seq)
		}
	}
	m.d.Settle(m.ended)
	m.ended = nil
}

func (m *queueModel) makeReady(r *row) {
	r.ready = true
	m.d.WakeFrom(map[id.UUID]int64{r.lane: r.seq})
}

// those are the rows that satisfy a condition.
func (m *queueModel) those(of func(*row) bool) (list []*row) {
	for seq := int64(1); seq <= m.top; seq++ {
		if r := m.rows[seq]; r != nil && of(r) {
			list = append(list, r)
		}
	}
	return list
}

func (m *queueModel) one(of func(*row) bool, label string) *row {
	list := m.those(of)
	if len(list) == 0 {
		m.t.Skip("none")
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(m.t, label)]
}

// drain lets everything end without further changes.
func (m *queueModel) drain() {
	for _, r := range m.those(func(r *row) bool { return !r.committed }) {
		m.commit(r)
	}
	m.announce()
	m.handOver()
	for range 10*len(m.rows) + 50 {
		if m.reading == nil {
			m.plan()
		}
		if m.reading != nil {
			if !m.snapshot {
				m.look()
			}
			m.take(m.settled)
		}
		m.d.Kick()
		for len(m.flying) > 0 {
			m.finish(0, false)
		}
		m.record()
		for _, r := range m.those(func(r *row) bool { return !r.ready }) {
			m.makeReady(r)
		}
	}
}

// Whatever the order of commits, announcements, reads, results, retries and changes: every row is sent, none twice
// concurrently, and none that must not be sent.
func TestALaneIsReadWithoutAGapAndWithoutARepeat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newQueueModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "rows") {
					m.insert()
				}
			},
			"commit":   func(*rapid.T) { m.commit(m.one(func(r *row) bool { return !r.committed }, "row")) },
			"announce": func(*rapid.T) { m.announce() },
			// A transaction of this process: other steps can come between any two of its steps.
			"mark": func(t *rapid.T) {
				if m.mark != 0 {
					t.Skip("a transaction is under way")
				}
				m.mark = m.d.Mark()
			},
			"commit own": func(t *rapid.T) {
				if m.mark == 0 || m.own != nil {
					t.Skip("nothing to commit")
				}
				for range rapid.IntRange(1, 12).Draw(t, "rows") {
					m.insert()
					r := m.rows[m.top]
					r.committed = true
					m.own = append(m.own, r)
				}
			},
			// Everything that a read finds is sent and recorded before anything else happens.
			"whole pass": func(t *rapid.T) {
				if m.reading != nil {
					t.Skip("a read is under way")
				}
				m.d.Wake(m.lanes)
				if m.plan(); m.reading == nil {
					t.Skip("nothing to read")
				}
				m.look()
				m.take(m.settled)
				for len(m.flying) > 0 {
					m.finish(0, false)
				}
				m.record()
			},
			"hand over": func(t *rapid.T) {
				if m.own == nil {
					t.Skip("nothing to hand over")
				}
				m.handOver()
			},
			"plan": func(t *rapid.T) {
				if m.reading != nil {
					t.Skip("a read is under way")
				}
				m.plan()
			},
			"look": func(t *rapid.T) {
				if m.reading == nil || m.snapshot {
					t.Skip("nothing to look at")
				}
				m.look()
			},
			"take": func(t *rapid.T) {
				if m.reading == nil || !m.snapshot {
					t.Skip("nothing was read")
				}
				// The known watermark can be lower than the real one.
				m.take(max(m.settled-rapid.Int64Range(0, 5).Draw(t, "behind"), 0))
			},
			"break off": func(t *rapid.T) {
				if m.reading == nil {
					t.Skip("nothing to break off")
				}
				m.d.Abandon(*m.reading)
				m.reading = nil
			},
			"finish": func(t *rapid.T) {
				if len(m.flying) == 0 {
					t.Skip("none flies")
				}
				m.finish(rapid.IntRange(0, len(m.flying)-1).Draw(t, "job"), rapid.Bool().Draw(t, "again"))
			},
			"record":  func(*rapid.T) { m.record() },
			"promote": func(*rapid.T) { m.makeReady(m.one(func(r *row) bool { return !r.ready }, "row")) },
			"change": func(t *rapid.T) {
				m.rev++
				m.d.Configure(Lease{EndpointID: rapid.SampledFrom(m.lanes).Draw(t, "lane"), Rev: m.rev},
					&Settings{MaxInFlight: 3}, time.Now())
			},
			// As people cancel: the row is deleted, and the lane's owner is notified before anything else happens.
			"cancel": func(*rapid.T) {
				r := m.one(func(r *row) bool { return r.committed && !r.flying && !slices.Contains(m.own, r) }, "row")
				delete(m.rows, r.seq)
				m.rev++
				m.d.Configure(Lease{EndpointID: r.lane, Rev: m.rev}, &Settings{MaxInFlight: 3}, time.Now())
			},
			"from head": func(*rapid.T) { m.d.Restart(m.lanes, false) },
		})
		m.drain()
		if left := m.those(func(*row) bool { return true }); len(left) > 0 {
			text := ""
			for _, r := range left {
				text += fmt.Sprintf(" %d", r.seq)
			}
			t.Fatalf("rows%s of %d are never sent", text, m.top)
		}
		m.d.mu.Lock()
		defer m.d.mu.Unlock()
		if m.d.rows != 0 || m.d.bytes != 0 || m.d.inFlight != 0 {
			t.Fatalf("%d rows, %d bytes and %d requests are counted and not there", m.d.rows, m.d.bytes, m.d.inFlight)
		}
	})
}

func TestADroppedLaneGivesBackItsRoom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newQueueModel(t)
		for range rapid.IntRange(1, 30).Draw(t, "rows") {
			m.insert()
			m.commit(m.rows[m.top])
		}
		m.announce()
		m.plan()
		m.look()
		if rapid.Bool().Draw(t, "taken") {
			m.take(m.settled)
			for range rapid.IntRange(0, len(m.flying)).Draw(t, "finished") {
				m.finish(0, false)
			}
			if rapid.Bool().Draw(t, "recorded") {
				m.record()
			}
			if rapid.Bool().Draw(t, "reading") {
				m.plan()
			}
		}
		m.d.Reset()
		for len(m.flying) > 0 {
			m.finish(0, false)
		}
		m.d.Settle(m.ended)
		m.d.mu.Lock()
		defer m.d.mu.Unlock()
		if m.d.rows != 0 || m.d.bytes != 0 || m.d.inFlight != 0 {
			t.Fatalf("%d rows, %d bytes and %d requests are counted and not there", m.d.rows, m.d.bytes, m.d.inFlight)
		}
	})
}
