package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// Config is what a Keeper needs.
type Config struct {
	DB    *db.DB
	Store Store
	Log   *slog.Logger
	After int // days that stay in the database
	Back  int // days for which a restored day stays
}

// Keeper moves history between the database and the store. Of all processes one works at a time.
type Keeper struct {
	Config
	looked time.Time
	fails  struct {
		times int       // in a row: the open tables could not be written
		until time.Time // then it is tried again
	}
}

// Times and bounds of the work.
const (
	leaseLasts  = 5 * time.Minute // longer than any step
	storeWithin = 2 * time.Minute // for one object
	retryAfter  = 10 * time.Minute
	lookEvery   = 10 * time.Minute
	beginMost   = 500
	leaveTries  = 3
	// How many tenants' rows one set of files has at most, and how many lines. Both bound the memory of the process.
	tenantsTogether = 256
	setBytes        = 96 << 20
	failureText     = 500
)

// New returns a Keeper that does nothing before Work.
func New(c Config) *Keeper { return &Keeper{Config: c} }

var errDiffers = errors.New("the object that was read back differs from the one that was written")

// Work does what is due. It returns early if another process works.
func (k *Keeper) Work(ctx context.Context) error {
	return k.alone(ctx, func(hold func() error) error {
		if err := k.look(ctx); err != nil {
			return err
		}
		for {
			day, found, err := days.Next(ctx, k.DB, retryAfter)
			if err != nil {
				return err
			}
			if !found {
				break
			}
			if err := k.failed(ctx, day, k.do(ctx, day, hold)); err != nil {
				return err
			}
		}
		if err := k.convert(ctx, hold); err != nil {
			return err
		}
		return k.tidyLater(ctx, hold)
	})
}

// tidyLater is tidy, with a pause after a failure that grows.
func (k *Keeper) tidyLater(ctx context.Context, hold func() error) error {
	if time.Now().Before(k.fails.until) {
		return nil
	}
	err := k.tidy(ctx, hold)
	if err == nil {
		k.fails.times, k.fails.until = 0, time.Time{}
	}
	if err != nil && ctx.Err() == nil && !db.IsUnavailable(err) && !IsBusy(err) {
		k.fails.times++
		pause := history.Pause(k.fails.times)
		k.fails.until = time.Now().Add(pause)
		k.Log.Warn("the open tables of history could not be published; it is tried again", "after", pause, "error", err)
		err = nil
	}
	return err
}

// errBusy says that another process works on history.
var errBusy = errors.New("another process works on history")

// IsBusy reports whether another process works on history.
func IsBusy(err error) bool { return errors.Is(err, errBusy) }

// alone runs fn as the one process that works on history. fn extends its lease by hold, after each step.
func (k *Keeper) alone(ctx context.Context, fn func(hold func() error) error) error {
	held, mine, err := days.Hold(ctx, k.DB, time.Time{}, leaseLasts)
	if err != nil || !mine {
		return err
	}
	defer func() { _ = days.Release(context.WithoutCancel(ctx), k.DB, held) }()
	return fn(func() error {
		held, mine, err = days.Hold(ctx, k.DB, held, leaseLasts)
		if err == nil && !mine {
			err = errBusy
		}
		return err
	})
}

// failed records that a day was not moved, and returns nil. It returns errors after which no day can be moved.
func (k *Keeper) failed(ctx context.Context, day days.Day, err error) error {
	if err == nil || ctx.Err() != nil || db.IsUnavailable(err) || IsBusy(err) {
		return err
	}
	why := clip(err.Error())
	if days.IsPassing(err) {
		why = "waiting: " + why // CountHistory
	} else {
		k.Log.Warn("a day of history could not be moved; it is tried again", "tenant", id.Tenant.Format(day.Tenant), "day", day.At.Format(time.DateOnly),
			"state", string(day.State), "error", err)
	}
	return day.Fail(ctx, k.DB, why)
}

func clip(text string) string {
	if len(text) > failureText {
		return strings.ToValidUTF8(text[:failureText], "")
	}
	return text
}

// look finds days that are to be stored or deleted, once in a while.
func (k *Keeper) look(ctx context.Context) error {
	now, err := k.DB.ServerTime(ctx)
	if err != nil || now.Sub(k.looked).Abs() < lookEvery {
		return err
	}
	if quiet, err := k.DB.IsClockQuiet(ctx, now); err != nil || !quiet {
		return err
	}
	expired, err := days.Expired(ctx, k.DB, beginMost)
	if err != nil {
		return err
	}
	for _, day := range expired {
		if err := k.deleteOld(ctx, day); err != nil {
			return err
		}
		if err := day.Forget(ctx, k.DB); err != nil {
			return err
		}
	}
	n, err := days.Begin(ctx, k.DB, history.Cutoff(now, k.After), int32(k.Back), beginMost)
	if err == nil && n < beginMost && len(expired) < beginMost {
		k.looked = now
	}
	return err
}

func folderOf(y days.Day) string {
	return id.Tenant.Format(y.Tenant) + "/" + y.At.Format(time.DateOnly) + "/"
}

func (k *Keeper) do(ctx context.Context, day days.Day, hold func() error) error {
	switch day.State {
	case history.Exporting:
		return k.export(ctx, day, hold)
	case history.Leaving:
		return k.leave(ctx, day, hold)
	case history.Returning:
		return k.bringBack(ctx, day, hold)
	}
	return nil
}

// exported is a day of a tenant while it is exported together with others.
type exported struct {
	day    days.Day
	counts history.Counts
	bytes  int64
	err    error
}

// export writes the rows of a day of a tenant, and of the same day of other tenants, into files. Each tenant's rows are
// compared with its ledger, and then may leave.
func (k *Keeper) export(ctx context.Context, first days.Day, hold func() error) error {
	together, err := days.Together(ctx, k.DB, first.At, retryAfter, tenantsTogether)
	if err != nil {
		return err
	}
	b := k.newBatch(first.At)
	all := make([]*exported, len(together))
	for i, day := range together {
		all[i] = &exported{day: day}
		if all[i].err = k.exportDay(ctx, b, all[i], hold); ctx.Err() != nil || db.IsUnavailable(all[i].err) || IsBusy(all[i].err) {
			return all[i].err
		}
	}
	b.end(ctx)
	if err := hold(); err != nil {
		return err
	}
	for _, e := range all {
		if e.err == nil {
			e.err = b.ofTenant(e.day.Tenant)
		}
		if e.err == nil {
			e.err = e.day.Check(ctx, k.DB, e.counts, e.bytes)
		}
		if e.err == nil {
			e.err = e.day.To(ctx, k.DB, history.Leaving)
		} else if failed := e.day.To(ctx, k.DB, history.Exporting); !days.IsPassing(failed) { // it starts again, without files
			e.err = errors.Join(e.err, failed)
		}
		if e.day.Tenant == first.Tenant {
			err = e.err
		} else if failed := k.failed(ctx, e.day, e.err); failed != nil {
			return failed
		}
	}
	return err
}

// exportDay reads the rows of a tenant's day into files.
func (k *Keeper) exportDay(ctx context.Context, b *batch, e *exported, hold func() error) error {
	if err := e.day.Ready(ctx, k.DB); err != nil {
		return err
	}
	if err := k.deleteOld(ctx, e.day); err != nil {
		return err
	}
	if err := e.day.To(ctx, k.DB, history.Exporting); err != nil {
		return err
	}
	for low, end := e.day.At, e.day.At.AddDate(0, 0, 1); low.Before(end); {
		p, err := e.day.ReadPart(ctx, k.DB, low, end)
		if err != nil {
			return err
		}
		low = p.High
		if p.N > 0 {
			e.counts.Add(p.Counts)
			if err := b.add(ctx, e.day.Tenant, p.Lines, k.keeps(e.day, p, &e.bytes)); err != nil {
				return err
			}
		}
		if err := hold(); err != nil {
			return err
		}
	}
	return nil
}

// keeps records a part of a day when its files are written. The lines are not kept in memory until then.
func (k *Keeper) keeps(day days.Day, p days.Part, bytes *int64) recordPart {
	p.Lines = nil
	return func(ctx context.Context, f days.File, at days.Placed) error {
		*bytes += at.Bytes
		return day.Keep(ctx, k.DB, p, f, at)
	}
}

// put writes an object and reads it back.
func (k *Keeper) put(ctx context.Context, name string, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	if err := k.Store.Put(ctx, name, body); err != nil {
		return err
	}
	back, err := k.Store.Get(ctx, name, int64(len(body)))
	if err == nil && !bytes.Equal(back, body) {
		err = errDiffers
	}
	return err
}

// leave deletes the rows of a day, part by part. It first exports again the parts that changed since their export.
func (k *Keeper) leave(ctx context.Context, day days.Day, hold func() error) error {
	parts, err := day.Parts(ctx, k.DB)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if part.Gone {
			continue
		}
		for try := 0; ; try++ {
			left, err := day.Leave(ctx, k.DB, part)
			if err != nil {
				return err
			}
			if left {
				break
			}
			if try == leaveTries {
				return days.ErrRows
			}
			if part, err = k.again(ctx, day, part); err != nil {
				return err
			}
		}
		if err := hold(); err != nil {
			return err
		}
	}
	rest, err := day.ReadPart(ctx, k.DB, day.At, time.Time{})
	if err != nil {
		return err
	}
	if rest.N > 0 {
		return fmt.Errorf("%d rows were added to the day while it left; bring it back, and it leaves with them", rest.N)
	}
	if err := day.To(ctx, k.DB, history.Stored); err != nil {
		return err
	}
	k.Log.Info("a day of history is in storage", "tenant", id.Tenant.Format(day.Tenant), "day", day.At.Format(time.DateOnly), "parts", len(parts))
	return nil
}

// again exports a part whose rows have changed, into files of its own.
func (k *Keeper) again(ctx context.Context, day days.Day, old sql.HistoryPart) (part sql.HistoryPart, err error) {
	p, err := day.ReadPart(ctx, k.DB, old.Low, old.High)
	if err != nil {
		return part, err
	}
	if !p.High.Equal(old.High) {
		return part, days.ErrRows
	}
	b := k.newBatch(day.At)
	if err := b.add(ctx, day.Tenant, p.Lines, k.keeps(day, p, new(int64))); err != nil {
		return part, err
	}
	b.end(ctx)
	if err := b.ofTenant(day.Tenant); err != nil {
		return part, err
	}
	parts, err := day.Parts(ctx, k.DB)
	for _, one := range parts {
		if one.Low.Equal(old.Low) {
			return one, err
		}
	}
	return part, errors.Join(err, days.ErrRows)
}

// deleteOld deletes the objects of lines that a day has, or that an older version began to write.
func (k *Keeper) deleteOld(ctx context.Context, day days.Day) error {
	has, err := day.HasLines(ctx, k.DB)
	if err != nil || !has {
		return err
	}
	if err := k.deleteAll(ctx, folderOf(day)); err != nil {
		return err
	}
	return day.MayHaveLines(ctx, k.DB, false)
}

// convert writes days that an older version stored as lines into files, those of one date at a time.
func (k *Keeper) convert(ctx context.Context, hold func() error) error {
	old, err := days.Old(ctx, k.DB, retryAfter, tenantsTogether)
	if err != nil || len(old) == 0 {
		return err
	}
	b := k.newBatch(old[0].At)
	failed := make([]error, len(old))
	for i, day := range old {
		// When the parts are moved, nothing else says that their objects are left.
		if err := day.MayHaveLines(ctx, k.DB, true); err != nil {
			return err
		}
		parts, err := day.Parts(ctx, k.DB)
		if err != nil {
			return err
		}
		for _, part := range parts {
			if part.FileID != nil {
				continue
			}
			if err := k.move(ctx, k.reader(), b, part); err != nil {
				failed[i] = fmt.Errorf("%s: %w", part.Object, err)
				break
			}
			if err := hold(); err != nil {
				return err
			}
		}
	}
	b.end(ctx)
	for i, day := range old {
		err := failed[i]
		if err == nil {
			err = b.ofTenant(day.Tenant)
		}
		if err == nil {
			err = k.deleteOld(ctx, day)
		}
		if err == nil {
			err = day.Well(ctx, k.DB)
		}
		if err := k.failed(ctx, day, err); err != nil {
			return err
		}
	}
	k.Log.Info("days of history were written into the open tables", "day", old[0].At.Format(time.DateOnly), "tenants", len(old))
	return hold()
}

// move adds the rows of a part, without data that was expunged, to other files, and records where they are when these
// are written.
func (k *Keeper) move(ctx context.Context, r *Reader, b *batch, part sql.HistoryPart) error {
	rows, err := r.Rows(ctx, part)
	if err != nil {
		return err
	}
	lines, moved, err := days.Rewrite(ctx, k.DB, part, rows)
	if err != nil {
		return err
	}
	return b.add(ctx, part.TenantID, lines, func(ctx context.Context, f days.File, at days.Placed) error {
		return days.MovePart(ctx, k.DB, moved, f, at)
	})
}

// tidy writes files with rows of no part, or with data that was expunged, again without these, publishes the metadata,
// and then deletes the old files.
func (k *Keeper) tidy(ctx context.Context, hold func() error) error {
	if err := days.MarkExpunged(ctx, k.DB); err != nil {
		return err
	}
	var unused []days.File
	var failed error
	for after := (id.UUID{}); ; {
		f, parts, found, err := days.NextDirty(ctx, k.DB, after)
		if err != nil {
			return err
		}
		if !found {
			break
		}
		after = f.ID
		drop, err := k.rewrite(ctx, f, parts)
		if ctx.Err() != nil || db.IsUnavailable(err) {
			return err
		}
		if err != nil {
			k.Log.Warn("files of history could not be written again; it is tried again", "file", f.ID.String(), "day", f.Day.Format(time.DateOnly), "error", err)
			failed = err
		}
		if drop {
			unused = append(unused, f)
		}
		if err := hold(); err != nil {
			return err
		}
	}
	if len(unused) > 0 {
		if err := days.Changed(ctx, k.DB); err != nil {
			return err
		}
	}
	if err := k.publish(ctx); err != nil {
		return err
	}
	for _, f := range unused {
		for table := range history.Open {
			if err := k.Store.Delete(ctx, objectName(table, f.Day, f.ID)); err != nil {
				return err
			}
		}
		if err := days.DropFile(ctx, k.DB, f); err != nil {
			return err
		}
	}
	if n, err := days.EndExpunges(ctx, k.DB); err != nil {
		return err
	} else if n > 0 {
		k.Log.Info("no file of history has the data of expunged events any more", "events", n)
	}
	return failed
}

// rewrite moves the parts of a set of files into another. It returns true if no part needs the old one.
func (k *Keeper) rewrite(ctx context.Context, f days.File, parts []sql.HistoryPart) (drop bool, err error) {
	var rows int64
	for _, p := range parts {
		for i := 1; i < len(p.Places); i += 2 {
			rows += p.Places[i]
		}
	}
	expunged, err := days.HasExpunged(ctx, k.DB, parts)
	if err != nil {
		return false, err
	}
	if len(parts) > 0 && rows == f.Rows() && !expunged {
		return false, days.Written(ctx, k.DB, f) // the process ended before it said so
	}
	b := k.newBatch(f.Day)
	r := k.reader()
	for _, part := range parts {
		if err := k.move(ctx, r, b, part); err != nil {
			return false, err
		}
	}
	b.end(ctx)
	for _, part := range parts {
		if err := b.ofTenant(part.TenantID); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (k *Keeper) reader() *Reader { return NewReader(k.DB, k.Store) }

func (k *Keeper) deleteAll(ctx context.Context, prefix string) error {
	return k.deleteBut(ctx, prefix, nil)
}

// deleteBut deletes all objects with a prefix except for some.
func (k *Keeper) deleteBut(ctx context.Context, prefix string, keep map[string]bool) error {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	names, err := k.Store.List(ctx, prefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		if keep[name] {
			continue
		}
		if err := k.Store.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// bringBack inserts the rows of a day again. Then no part names its files.
func (k *Keeper) bringBack(ctx context.Context, day days.Day, hold func() error) error {
	parts, err := day.Parts(ctx, k.DB)
	if err != nil {
		return err
	}
	r := k.reader()
	for _, part := range parts {
		if !part.Gone {
			continue
		}
		rows, err := r.Rows(ctx, part)
		if err != nil {
			return fmt.Errorf("%s: %w", part.Object, err)
		}
		if err := day.Return(ctx, k.DB, part.Low, rows); err != nil {
			return err
		}
		if err := hold(); err != nil {
			return err
		}
	}
	if err := k.deleteOld(ctx, day); err != nil {
		return err
	}
	if err := day.To(ctx, k.DB, history.Back); err != nil {
		return err
	}
	k.Log.Info("a day of history is back", "tenant", id.Tenant.Format(day.Tenant), "day", day.At.Format(time.DateOnly))
	return nil
}

// Erase deletes a deleted tenant's rows from the store. Its records in the database are deleted later.
func (k *Keeper) Erase(ctx context.Context, tenant id.UUID) error {
	err := errBusy
	if failed := k.alone(ctx, func(hold func() error) error {
		if err = k.deleteAll(ctx, id.Tenant.Format(tenant)+"/"); err != nil {
			return err
		}
		if err = days.ForgetTenant(ctx, k.DB, tenant); err != nil {
			return err
		}
		if err = k.tidy(ctx, hold); err != nil {
			return err
		}
		err = days.Purged(ctx, k.DB, tenant)
		return err
	}); failed != nil {
		return failed
	}
	return err
}
