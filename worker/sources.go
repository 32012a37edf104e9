package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"posthorn/worker/loop"
	"posthorn/worker/send"

	"posthorn/db"
	"posthorn/db/emit"
	"posthorn/db/sources"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/source"
)

const (
	sourcesEvery = time.Second
	// how many sources store messages at the same moment: the others wait for their turn, and requests keep connections
	sourcesAtOnce = 4
	takeTimeout   = 10 * time.Second
	roomEvery     = 200 * time.Millisecond
	roomPatience  = 5 * time.Second // for room in the outbox, before a reader disconnects
)

// sourceReader reads one source.
type sourceReader struct {
	*Worker
	sources.Claimed
	slots chan struct{}
	stop  context.CancelFunc
	done  chan struct{}
}

// readSources reads the sources that this worker has claimed, until the context ends. What a reader has received and
// not stored then is delivered again.
func (w *Worker) readSources(ctx context.Context) {
	running := map[id.UUID]*sourceReader{}
	slots := make(chan struct{}, sourcesAtOnce)
	for ctx.Err() == nil {
		var own []sources.Claimed
		var err error
		me := w.id()
		if w.member.mayLive() {
			own, err = sources.Claim(ctx, w.db, me)
		}
		if err == nil {
			w.adjustReaders(ctx, running, own, slots)
		} else if ctx.Err() == nil && !db.IsPassing(err) {
			w.log.Warn("sources could not be claimed; it is tried again", "error", err)
		}
		loop.Sleep(ctx, sourcesEvery)
	}
	w.adjustReaders(ctx, running, nil, slots)
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTimeout)
	defer cancel()
	if err := sources.Release(finish, w.db, w.id()); err != nil {
		w.log.Warn("sources could not be given back; others claim them when this worker's silence is noticed", "error", err)
	}
}

// adjustReaders stops the readers of sources that are no longer this worker's or were changed, and starts those that
// are missing.
func (w *Worker) adjustReaders(ctx context.Context, running map[id.UUID]*sourceReader, own []sources.Claimed, slots chan struct{}) {
	wanted := make(map[id.UUID]sources.Claimed, len(own))
	for _, c := range own {
		wanted[c.ID] = c
	}
	var ending sync.WaitGroup
	for sourceID, r := range running {
		c, is := wanted[sourceID]
		ended := false
		select {
		case <-r.done:
			ended = true
		default:
		}
		if is && !ended && c.Worker == r.Claimed.Worker && c.Revision == r.Revision {
			delete(wanted, sourceID)
			continue
		}
		r.stop()
		ending.Go(func() { <-r.done })
		delete(running, sourceID)
	}
	ending.Wait()
	for sourceID, c := range wanted {
		reading, stop := context.WithCancel(ctx)
		r := &sourceReader{Worker: w, Claimed: c, slots: slots, stop: stop, done: make(chan struct{})}
		running[sourceID] = r
		go func() {
			defer close(r.done)
			r.run(reading)
		}()
	}
}

// run reads the source until the context ends or the source is another worker's. After a failure it waits, longer each
// time, and connects again.
func (r *sourceReader) run(ctx context.Context) {
	for failures := 0; ctx.Err() == nil; {
		took, err := r.read(ctx)
		if ctx.Err() != nil || errors.Is(err, sources.ErrLost) {
			return
		}
		if err == nil { // no room
			continue
		}
		if failures++; took {
			failures = 1
		}
		r.note(ctx, r.reasonOf(err), nil)
		if !loop.Sleep(ctx, source.Backoff(failures)) {
			return
		}
	}
}

// reasonOf is why a source can't be read, for its tenant.
func (r *sourceReader) reasonOf(err error) string {
	var failed *send.ReceiveError
	switch {
	case errors.As(err, &failed):
		return "Reading failed: " + failed.Error() + "."
	case errors.Is(err, sources.ErrRecreated):
		return "Reading failed: " + sources.ErrRecreated.Error() + "."
	case !db.IsUnavailable(err):
		r.log.Warn("a source could not be read; it is tried again", "source", id.Source.Format(r.ID), "error", err)
	}
	return "Reading failed: an internal error. It is tried again."
}

func (r *sourceReader) note(ctx context.Context, reason string, waiting *int64) {
	if err := r.Note(ctx, r.db, reason, waiting); err != nil && ctx.Err() == nil && !db.IsPassing(err) {
		r.log.Warn("the state of a source could not be recorded", "source", id.Source.Format(r.ID), "error", err)
	}
}

// read waits for room, connects, and takes messages until something fails, or there is no room for a while. took says
// whether it took any.
func (r *sourceReader) read(ctx context.Context) (took bool, err error) {
	if _, err := r.room(ctx, 0); err != nil {
		return false, err
	}
	settings, err := sources.Settings(r.Source, r.keys)
	if err != nil {
		return false, err
	}
	from, err := r.sender.NewReceiver(settings)
	if err != nil {
		return false, err
	}
	defer from.Close()
	err = from.Open(ctx, func(ctx context.Context, of map[int32]source.Bounds) (map[int32]int64, error) {
		return r.Positions(ctx, r.db, of)
	})
	if err != nil {
		return false, err
	}
	var measured time.Time
	for ctx.Err() == nil {
		if time.Since(measured) >= source.MeasureEach {
			measured = time.Now()
			r.measure(ctx, from)
		}
		if is, err := r.room(ctx, roomPatience); err != nil || !is {
			return took, err
		}
		some, err := r.batch(ctx, from)
		if took = took || some; err != nil {
			return took, err
		}
	}
	return took, ctx.Err()
}

// measure records that the source is read, and how many messages wait. A broker that does not say how many is read.
func (r *sourceReader) measure(ctx context.Context, from send.Receiver) {
	bounded, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	n, err := from.Waiting(bounded)
	waiting := &n
	if err != nil {
		waiting = nil
	}
	r.note(ctx, "", waiting)
}

// room waits until the source has room in the database, for so long at most; 0: until the context ends.
func (r *sourceReader) room(ctx context.Context, patience time.Duration) (bool, error) {
	var noted string
	for began := time.Now(); ; {
		held, err := r.Held(ctx, r.db)
		if err != nil {
			return false, err
		}
		full, reason := held.Full()
		if !full {
			return true, nil
		}
		if reason != "" && reason != noted {
			r.note(ctx, reason+".", nil)
			noted = reason
		}
		if patience > 0 && time.Since(began) > patience {
			return false, nil
		}
		if !loop.Sleep(ctx, roomEvery) {
			return false, ctx.Err()
		}
	}
}

// batch receives messages, stores them, and acknowledges them. Storing is tried until it succeeds: the broker still has
// the messages.
func (r *sourceReader) batch(ctx context.Context, from send.Receiver) (took bool, err error) {
	messages, moves, err := from.Receive(ctx, source.Wait)
	if err != nil || len(messages) == 0 {
		return false, err
	}
	for failures := 1; ; failures++ {
		err := r.take(ctx, messages, moves)
		if err == nil {
			break
		}
		if ctx.Err() != nil || !db.IsUnavailable(err) {
			return false, err
		}
		loop.Sleep(ctx, source.Backoff(failures))
	}
	finish, done := context.WithTimeout(context.WithoutCancel(ctx), takeTimeout)
	defer done()
	return true, from.Acknowledge(finish, messages)
}

func (r *sourceReader) take(ctx context.Context, messages []source.Message, moves source.Moves) error {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	finish, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeTimeout)
	defer cancel()
	err := r.Take(finish, r.db, messages, moves)
	if err == nil {
		r.tellRelay()
	}
	return err
}

// mappings makes events of the messages of sources. The relay alone uses it.
type mappings struct {
	compiled map[string]source.Mapping // by text
	of       map[id.UUID]string        // the texts of the sources of one round
	err      error
}

// maxMappings is how many mappings are kept compiled.
const maxMappings = 500

// read reads the mappings of the rows of a round, if any is a message of a source.
func (m *mappings) read(ctx context.Context, d *db.DB, rows []sql.Outbox) {
	if m.of, m.err = sources.Mappings(ctx, d, rows); len(m.of) == 0 {
		return
	}
	if m.compiled == nil || len(m.compiled) > maxMappings {
		m.compiled = map[string]source.Mapping{}
	}
	for _, text := range m.of {
		if _, known := m.compiled[text]; !known {
			compiled, err := source.Compile(text)
			if err != nil { // it was compiled before it was stored
				m.err = err
				return
			}
			m.compiled[text] = compiled
		}
	}
}

var errSourceDeleted = fault.New(fault.Invalid, "source_deleted", "The source of this message was deleted. Discard the message.")

// item is a row of the outbox as an emission.
func (m *mappings) item(row *sql.Outbox) (emit.Item, error) {
	if row.SourceID == nil {
		return outboxItem(row)
	}
	text, is := m.of[*row.SourceID]
	switch {
	case m.err != nil:
		return emit.Item{}, m.err
	case !is:
		return emit.Item{}, errSourceDeleted
	}
	message, err := source.Decode(row.Data)
	if err != nil {
		return emit.Item{}, err
	}
	if _, large := message.Encode(); large {
		return emit.Item{}, fault.New(fault.Invalid, source.CodeTooLarge, source.LargeDetail)
	}
	body, e, err := m.compiled[text].Event(message, row.ID.Time())
	if err != nil {
		return emit.Item{}, err
	}
	item := emit.Keyed(e, body)
	item.ID = row.ID
	return item, nil
}
