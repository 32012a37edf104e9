package sources

import (
	"context"
	"errors"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/source"
)

// Claimed is a source that a worker reads.
type Claimed struct {
	sql.Source
	Worker id.UUID
}

// ErrLost says that another worker reads the source, or that it was changed, paused, or deleted.
var ErrLost = errors.New("the source is read by another worker, or was changed")

// Claim takes a share of the sources that no live worker reads, gives back what is more than a share, and returns those
// that the worker reads.
func Claim(ctx context.Context, d *db.DB, worker id.UUID) (own []Claimed, err error) {
	some := false
	err = d.Worker(ctx, func(q *sql.Queries) error {
		share, err := q.SourceShare(ctx)
		if err != nil || share == 0 {
			return err
		}
		some = true
		rows, err := q.OwnSources(ctx, worker)
		if err != nil {
			return err
		}
		if len(rows) > int(share) {
			if err := q.ReleaseSources(ctx, worker, share); err != nil {
				return err
			}
		}
		for n := len(rows); n < int(share); n++ {
			if claimed, err := q.ClaimSource(ctx, worker); err != nil || claimed == 0 {
				return err
			}
		}
		return nil
	})
	if err != nil || !some {
		return nil, err
	}
	err = d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.OwnSources(ctx, worker)
		for _, row := range rows {
			own = append(own, Claimed{row, worker})
		}
		return err
	})
	return own, err
}

// Release gives all sources of a worker back.
func Release(ctx context.Context, d *db.DB, worker id.UUID) error {
	return d.Worker(ctx, func(q *sql.Queries) error { return q.ReleaseSources(ctx, worker, 0) })
}

// hold runs fn in a transaction in which nobody else reads or changes the source.
func (c Claimed) hold(ctx context.Context, d *db.DB, fn func(*sql.Queries) error) error {
	return d.Worker(ctx, func(q *sql.Queries) error {
		_, err := q.HoldSource(ctx, sql.HoldSourceParams{TenantID: c.TenantID, ID: c.ID, Worker: c.Worker, Revision: c.Revision})
		if db.IsMissing(err) {
			return ErrLost
		} else if err != nil {
			return err
		}
		return fn(q)
	})
}

// ErrRecreated says that a topic ends before the place up to which it was read.
var ErrRecreated = errors.New("the topic has fewer records than were read of it: it was probably deleted and created again. Create a source for the new topic")

// Positions returns the next record of each partition of a topic. Partitions that have none begin as the source says;
// those that were added to a topic that is read already begin at their first record. Records that the topic deleted
// before they were read are counted.
func (c Claimed) Positions(ctx context.Context, d *db.DB, of map[int32]source.Bounds) (next map[int32]int64, err error) {
	err = c.hold(ctx, d, func(q *sql.Queries) error {
		rows, err := q.SourcePositions(ctx, c.TenantID, c.ID)
		if err != nil {
			return err
		}
		next = make(map[int32]int64, len(of))
		for _, row := range rows {
			next[row.Partition] = row.Next
		}
		start := sql.StartPositionsParams{TenantID: c.TenantID, SourceID: c.ID}
		move := sql.MovePositionsParams{TenantID: c.TenantID, SourceID: c.ID}
		missed := int64(0)
		for partition, b := range of {
			at, known := next[partition]
			switch {
			case !known:
				if at = b.First; c.Start == source.Newest && len(rows) == 0 {
					at = b.End
				}
				start.Partitions, start.Nexts = append(start.Partitions, partition), append(start.Nexts, at)
				next[partition] = at
			case at > b.End:
				return ErrRecreated
			case at < b.First:
				missed += b.First - at
				move.Partitions, move.Froms, move.Nexts = append(move.Partitions, partition), append(move.Froms, at), append(move.Nexts, b.First)
				next[partition] = b.First
			}
		}
		if missed > 0 {
			if _, err := q.MovePositions(ctx, move); err != nil {
				return err
			}
			if err := q.NoteMissed(ctx, sql.NoteMissedParams{Records: missed, TenantID: c.TenantID, ID: c.ID}); err != nil {
				return err
			}
		}
		return q.StartPositions(ctx, start)
	})
	return next, err
}

// Take stores messages for the relay, each once whatever the broker delivers, and moves the positions of a topic, in
// one transaction. moves is nil for a queue. Once it returns, the messages can be acknowledged.
func (c Claimed) Take(ctx context.Context, d *db.DB, messages []source.Message, moves source.Moves) error {
	return c.hold(ctx, d, func(q *sql.Queries) error {
		if moves == nil {
			var err error
			if messages, err = c.unseen(ctx, q, messages); err != nil {
				return err
			}
		} else if err := c.move(ctx, q, moves); err != nil {
			return err
		}
		return c.store(ctx, q, messages)
	})
}

func (c Claimed) unseen(ctx context.Context, q *sql.Queries, messages []source.Message) (taken []source.Message, err error) {
	digests := make([][]byte, len(messages))
	for i, m := range messages {
		digests[i], _ = m.Digest()
	}
	rows, err := q.NoteMessages(ctx, sql.NoteMessagesParams{TenantID: c.TenantID, SourceID: c.ID, Digests: digests})
	if err != nil {
		return nil, err
	}
	fresh := make(map[string]bool, len(rows))
	for _, digest := range rows {
		fresh[string(digest)] = true
	}
	for _, i := range source.Unseen(messages, digests, fresh) {
		taken = append(taken, messages[i])
	}
	return taken, nil
}

func (c Claimed) move(ctx context.Context, q *sql.Queries, moves source.Moves) error {
	p := sql.MovePositionsParams{TenantID: c.TenantID, SourceID: c.ID}
	for partition, m := range moves {
		p.Partitions, p.Froms, p.Nexts = append(p.Partitions, partition), append(p.Froms, m.From), append(p.Nexts, m.To)
	}
	n, err := q.MovePositions(ctx, p)
	if err == nil && int(n) != len(moves) {
		return ErrLost
	}
	return err
}

func (c Claimed) store(ctx context.Context, q *sql.Queries, messages []source.Message) error {
	queued := sql.QueueMessagesParams{TenantID: c.TenantID, SourceID: c.ID}
	large := sql.RejectMessagesParams{TenantID: c.TenantID, SourceID: c.ID, Code: source.CodeTooLarge, Detail: source.LargeDetail}
	var sent *time.Time
	count := 0
	for _, m := range messages {
		if m.Control {
			continue
		}
		if count++; m.Time != nil {
			sent = m.Time
		}
		text, isLarge := m.Encode()
		if isLarge {
			large.Ids, large.Datas = append(large.Ids, db.NewID()), append(large.Datas, text)
		} else {
			queued.Ids, queued.Datas = append(queued.Ids, db.NewID()), append(queued.Datas, text)
		}
	}
	if count == 0 {
		return nil
	}
	if len(large.Ids) > 0 {
		if err := q.RejectMessages(ctx, large); err != nil {
			return err
		}
	}
	if len(queued.Ids) > 0 {
		if err := q.QueueMessages(ctx, queued); err != nil {
			return err
		}
		if err := q.NotifyOutbox(ctx); err != nil {
			return err
		}
	}
	return q.NoteRead(ctx, sql.NoteReadParams{SentAt: sent, TenantID: c.TenantID, ID: c.ID})
}

// Held counts what of the source is in the database.
func (c Claimed) Held(ctx context.Context, d *db.DB) (h source.Held, err error) {
	p := sql.SourceRoomParams{SourceID: c.ID}
	p.WaitingMost, p.RejectedMost = source.Counted()
	err = d.Worker(ctx, func(q *sql.Queries) error {
		r, err := q.SourceRoom(ctx, p)
		h = source.Held{Stored: r.Waiting, StoredBytes: r.WaitingBytes, Rejected: r.Rejected, RejectedBytes: r.RejectedBytes}
		return err
	})
	return h, err
}

// Note records how the source is: why it can't be read, and how many messages wait, if that is known.
func (c Claimed) Note(ctx context.Context, d *db.DB, reason string, waiting *int64) error {
	return d.Worker(ctx, func(q *sql.Queries) error {
		return q.NoteSource(ctx, sql.NoteSourceParams{
			Reason:   reason,
			Waiting:  waiting,
			Batch:    source.Batch,
			TenantID: c.TenantID,
			ID:       c.ID,
			Worker:   c.Worker,
			Revision: c.Revision,
		})
	})
}

// Tell tells tenants of sources that fail, or fall behind, for long: once for each time that it begins.
func Tell(ctx context.Context, d *db.DB, now time.Time) error {
	_, err := d.Periodic(ctx, "sources", time.Minute, func(q *sql.Queries) error {
		rows, err := q.SourcesToTell(ctx, source.FailingTold.Seconds())
		if err != nil {
			return err
		}
		for _, row := range rows {
			s := stateOf(row)
			why := s.Told(now)
			if why == "" {
				continue
			}
			details := notice.SourceDetails{Source: id.Source.Format(row.ID), Name: row.Name, URL: row.URL, Reason: row.Reason, Since: s.FailingSince}
			if why == "behind" {
				details.Reason, details.Behind, details.Since = "More messages arrive than are taken.", true, s.BehindSince
				details.Waiting = *row.Waiting
			}
			if _, err := accounts.PostNotice(ctx, q, accounts.Notice{
				Tenant:  row.TenantID,
				Kind:    notice.SourceFailing,
				Key:     string(notice.SourceFailing) + ":" + details.Source + ":" + why + ":" + details.Since.UTC().Format(time.RFC3339),
				Details: details,
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Mappings reads the mappings of the sources of some rows of the outbox, by source. A source that was deleted is
// missing.
func Mappings(ctx context.Context, d *db.DB, rows []sql.Outbox) (map[id.UUID]string, error) {
	var ids []id.UUID
	for _, row := range rows {
		if row.SourceID != nil && !slices.Contains(ids, *row.SourceID) {
			ids = append(ids, *row.SourceID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	of := make(map[id.UUID]string, len(ids))
	err := d.Worker(ctx, func(q *sql.Queries) error {
		found, err := q.SourceMappings(ctx, ids)
		for _, row := range found {
			of[row.ID] = row.Mapping
		}
		return err
	})
	return of, err
}

// Forget deletes what is known of messages that no broker delivers again, some in each transaction.
func Forget(ctx context.Context, d *db.DB, most int32) error {
	for {
		var n int64
		did, err := d.Periodic(ctx, "source messages", 0, func(q *sql.Queries) (err error) {
			n, err = q.ForgetMessages(ctx, source.KeptDays, most)
			return err
		})
		if err != nil || !did || n < int64(most) {
			return err
		}
	}
}
