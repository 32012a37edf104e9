package lanes

import (
	"math/rand/v2"
	"testing"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/worker/send"
)

// recount counts what is ready of a lane from the start.
func recount(l *Lane, b *endpoint.Batch) (want tally) {
	for _, j := range l.ready {
		if want.n >= b.Events || want.size >= b.Bytes {
			break
		}
		want = tally{want.rows + 1, want.n + 1, want.size + j.room()}
	}
	return want
}

// arrival is a committed row with data of a size.
func arrival(ep id.UUID, seq int64, size int) Fresh {
	f := fresh(ep, seq)
	f.Event = &send.Payload{Event: &sql.Event{ID: db.NewID(), Type: "order.paid", Data: make([]byte, size)}}
	return f
}

// TestARequestStartsAsSoonAsItsBatchIsFull whatever came before: arrivals of any size, requests that take a part of
// what is ready, and rows that are forgotten. What an arrival counts is what a count from the start finds.
func TestARequestStartsAsSoonAsItsBatchIsFull(t *testing.T) {
	t.Parallel()
	for range 200 {
		b := newBench()
		limit := &endpoint.Batch{Events: 2 + rand.IntN(20), Bytes: 2_000 + rand.IntN(20_000), Wait: time.Hour}
		l := caughtUp(b, &Settings{MaxInFlight: 1 + rand.IntN(3), Batch: limit}, Health{})
		for seq := int64(11); seq < 150; seq++ {
			started := len(b.started)
			b.d.HandOver(b.d.Mark(), id.UUID{}, []Fresh{arrival(l.id, seq, rand.IntN(4_000))})
			want := recount(l, limit)
			full := want.n >= limit.Events || want.size >= limit.Bytes
			if len(l.ready) > 0 && l.isFull(limit) != full {
				t.Fatalf("row %d of a batch of %+v: full is %t, a count from the start finds %+v", seq, limit, !full, want)
			}
			if len(l.ready) > 0 && !full && l.batch.tally != want {
				t.Fatalf("row %d: counted %+v, want %+v", seq, l.batch.tally, want)
			}
			if full && l.inFlight < l.limit() {
				t.Fatalf("row %d: a full batch waits", seq)
			}
			switch {
			case len(b.started) > started:
			case len(b.started) > 0 && rand.IntN(4) == 0 && l.inFlight > 0:
				j := b.started[rand.IntN(len(b.started))]
				if j.inFlight {
					b.d.Finish(j, Outcome{}, time.Now())
				}
			case rand.IntN(40) == 0:
				b.d.mu.Lock()
				b.d.forgetReady(l)
				b.d.mu.Unlock()
				b.d.Take(b.d.Plan(), Found{}) // nothing is left above
			}
		}
		if l.health.breaker.State != health.Closed {
			t.Fatal("the breaker is not closed")
		}
	}
}

// BenchmarkArrivalsOfABatch: 400 events arrive one by one at a lane that gathers them.
func BenchmarkArrivalsOfABatch(b *testing.B) {
	limit := &endpoint.Batch{Events: 400, Bytes: 8 << 20, Wait: time.Hour}
	for b.Loop() {
		b.StopTimer()
		w := newBench()
		l := caughtUp(w, &Settings{MaxInFlight: 1, Batch: limit}, Health{})
		rows := make([]Fresh, limit.Events)
		for i := range rows {
			rows[i] = arrival(l.id, int64(11+i), 500)
		}
		b.StartTimer()
		for i := range rows {
			w.d.HandOver(w.d.Mark(), id.UUID{}, rows[i:i+1])
		}
		b.StopTimer()
		if len(w.started) != 1 || len(w.started[0].Rest) != limit.Events-1 {
			b.Fatalf("%d requests started", len(w.started))
		}
		b.StartTimer()
	}
}
