package history

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/migrations"
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
}

// Times and bounds of the work.
const (
	leaseLasts  = 5 * time.Minute // longer than any step
	storeWithin = 2 * time.Minute // for one object
	retryAfter  = 10 * time.Minute
	lookEvery   = 10 * time.Minute
	beginMost   = 500
	leaveTries  = 3
	failureText = 500
)

// New returns a Keeper that does nothing before Work.
func New(c Config) *Keeper { return &Keeper{Config: c} }

var errDiffers = errors.New("the object that was read back differs from the one that was written")

// Work does what is due. It returns early if another process works.
func (k *Keeper) Work(ctx context.Context) error {
	held, mine, err := days.Hold(ctx, k.DB, time.Time{}, leaseLasts)
	if err != nil || !mine {
		return err
	}
	defer func() { _ = days.Release(context.WithoutCancel(ctx), k.DB, held) }()
	if err := k.look(ctx); err != nil {
		return err
	}
	for {
		day, found, err := days.Next(ctx, k.DB, retryAfter)
		if err != nil {
			return err
		}
		if !found {
			return nil
		}
		err = k.do(ctx, day, func() error {
			held, mine, err = days.Hold(ctx, k.DB, held, leaseLasts)
			if err == nil && !mine {
				err = errors.New("another process took over the work on history")
			}
			return err
		})
		if ctx.Err() != nil || db.IsUnavailable(err) {
			return err
		}
		if err != nil {
			if !days.IsPassing(err) {
				k.Log.Warn("a day of history could not be moved; it is tried again", "tenant", id.Tenant.Format(day.Tenant), "day", day.At.Format(time.DateOnly),
					"state", string(day.State), "error", err)
			}
			why := clip(err.Error())
			if days.IsPassing(err) {
				why = "waiting: " + why // CountHistory
			}
			if err := day.Fail(ctx, k.DB, why); err != nil {
				return err
			}
		}
	}
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
		if err := k.deleteAll(ctx, folderOf(day)); err != nil {
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

// export writes the objects of a day, compares them with the ledger, and deletes the rows.
func (k *Keeper) export(ctx context.Context, day days.Day, hold func() error) error {
	parts, err := day.Parts(ctx, k.DB)
	if err != nil {
		return err
	}
	low, end := day.At, day.At.AddDate(0, 0, 1)
	if n := len(parts); n > 0 {
		low = parts[n-1].High
	}
	for low.Before(end) {
		p, err := day.ReadPart(ctx, k.DB, low, end)
		if err != nil {
			return err
		}
		if p.N > 0 {
			if err := k.keep(ctx, day, p); err != nil {
				return err
			}
		}
		low = p.High
		if err := hold(); err != nil {
			return err
		}
	}
	if err := k.describe(ctx, day, true); err != nil {
		return err
	}
	if err := day.To(ctx, k.DB, history.Leaving); err != nil {
		return err
	}
	return k.leave(ctx, day, hold)
}

// keep writes a part into the store, reads it back, and records it.
func (k *Keeper) keep(ctx context.Context, day days.Day, p days.Part) error {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(p.Lines); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	var random [4]byte
	_, _ = rand.Read(random[:])
	name := p.Low.Format("150405.000") + "-" + hex.EncodeToString(random[:]) + ".ndjson.gz"
	if err := k.put(ctx, folderOf(day)+name, packed.Bytes()); err != nil {
		return err
	}
	sum := sha256.Sum256(packed.Bytes())
	return day.Keep(ctx, k.DB, p, days.Object{Name: name, Digest: sum[:], Bytes: int64(packed.Len())})
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

// describe writes the manifest; checked compares the day with the ledger first.
func (k *Keeper) describe(ctx context.Context, day days.Day, checked bool) error {
	parts, err := day.Parts(ctx, k.DB)
	if err != nil {
		return err
	}
	m := history.Manifest{
		Format:  history.Format,
		Schema:  migrations.Newest(),
		Tenant:  id.Tenant.Format(day.Tenant),
		Day:     day.At.Format(time.DateOnly),
		Written: time.Now().UTC().Truncate(time.Second),
		FirstID: id.FirstAt(day.At).String(),
		LastID:  id.FirstAt(day.At.AddDate(0, 0, 1)).String(),
		Parts:   []history.Part{},
	}
	var size int64
	for _, p := range parts {
		var counts history.Counts
		if err := json.Unmarshal(p.Counts, &counts); err != nil {
			return err
		}
		m.Counts.Add(counts)
		size += p.Bytes
		m.Parts = append(m.Parts, history.Part{
			Object: p.Object,
			Low:    p.Low.UTC(),
			High:   p.High.UTC(),
			Lines:  p.N,
			Bytes:  p.Bytes,
			SHA256: hex.EncodeToString(p.Digest),
		})
	}
	if checked {
		if err := day.Check(ctx, k.DB, m.Counts, size); err != nil {
			if errors.Is(err, days.ErrRows) {
				err = errors.Join(err, day.To(ctx, k.DB, history.Exporting)) // start again
			}
			return err
		}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return k.put(ctx, folderOf(day)+history.ManifestName, append(text, '\n'))
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
	if err := k.tidy(ctx, day); err != nil {
		return err
	}
	if err := day.To(ctx, k.DB, history.Stored); err != nil {
		return err
	}
	k.Log.Info("a day of history is in storage", "tenant", id.Tenant.Format(day.Tenant), "day", day.At.Format(time.DateOnly), "objects", len(parts))
	return nil
}

// again exports a part whose rows have changed, and describes the day with it.
func (k *Keeper) again(ctx context.Context, day days.Day, old sql.HistoryPart) (part sql.HistoryPart, err error) {
	p, err := day.ReadPart(ctx, k.DB, old.Low, old.High)
	if err != nil {
		return part, err
	}
	if !p.High.Equal(old.High) {
		return part, days.ErrRows
	}
	if err := k.keep(ctx, day, p); err != nil {
		return part, err
	}
	if err := k.describe(ctx, day, false); err != nil {
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

// tidy deletes objects of the day that no part names: those of an interrupted try, and of parts that changed.
func (k *Keeper) tidy(ctx context.Context, day days.Day) error {
	parts, err := day.Parts(ctx, k.DB)
	if err != nil {
		return err
	}
	named := map[string]bool{folderOf(day) + history.ManifestName: true}
	for _, p := range parts {
		named[folderOf(day)+p.Object] = true
	}
	return k.deleteBut(ctx, folderOf(day), named)
}

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

// bringBack inserts the rows of a day again and deletes its objects.
func (k *Keeper) bringBack(ctx context.Context, day days.Day, hold func() error) error {
	parts, err := day.Parts(ctx, k.DB)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if !part.Gone {
			continue
		}
		lines, err := k.fetch(ctx, folderOf(day)+part.Object, part)
		if err != nil {
			return fmt.Errorf("%s: %w", part.Object, err)
		}
		if err := day.Return(ctx, k.DB, part.Low, lines); err != nil {
			return err
		}
		if err := hold(); err != nil {
			return err
		}
	}
	if err := k.deleteAll(ctx, folderOf(day)); err != nil {
		return err
	}
	if err := day.To(ctx, k.DB, history.Back); err != nil {
		return err
	}
	k.Log.Info("a day of history is back", "tenant", id.Tenant.Format(day.Tenant), "day", day.At.Format(time.DateOnly))
	return nil
}

// fetch reads and unpacks an object. If its content is not what was written, it returns an error.
func (k *Keeper) fetch(ctx context.Context, name string, part sql.HistoryPart) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	packed, err := k.Store.Get(ctx, name, part.Bytes)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(packed); string(sum[:]) != string(part.Digest) {
		return nil, errDiffers
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	lines, err := io.ReadAll(io.LimitReader(r, part.Size+1))
	if err == nil && int64(len(lines)) != part.Size {
		err = errDiffers
	}
	return lines, err
}

// Erase deletes a deleted tenant's objects from the store, and then its records in the database.
func (k *Keeper) Erase(ctx context.Context, tenant id.UUID) error {
	return k.deleteAll(ctx, id.Tenant.Format(tenant)+"/")
}
