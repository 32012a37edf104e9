package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/parquet-go/parquet-go"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// batch collects parts of tenants into sets of files. Add parts in the order of their tenants.
type batch struct {
	k      *Keeper
	day    time.Time
	set    *fileSet
	kept   []kept
	failed map[id.UUID]error // tenants with a part that could not be recorded
	lost   error             // why a set could not be written: parts of any tenant were in it
}

// kept is a part that is in the set, which is not written yet.
type kept struct {
	tenant id.UUID
	sum    [sha256.Size]byte
	size   int64
	places []int64
	record recordPart
}

// recordPart records where a part's rows are.
type recordPart func(ctx context.Context, f days.File, at days.Placed) error

func (k *Keeper) newBatch(day time.Time) *batch {
	return &batch{k: k, day: day, failed: map[id.UUID]error{}}
}

// add adds the lines of a tenant's part. record is called when its files are written. An error is of this part alone.
func (b *batch) add(ctx context.Context, tenant id.UUID, lines []byte, record recordPart) error {
	if b.set == nil {
		b.set = newFileSet(b.day)
	}
	places, err := b.set.add(tenant, lines)
	if err != nil {
		return err
	}
	b.kept = append(b.kept, kept{tenant: tenant, sum: sha256.Sum256(lines), size: int64(len(lines)), places: places, record: record})
	if b.set.size >= setBytes {
		b.write(ctx)
	}
	return nil
}

// end writes what is left. ofTenant then says whether a tenant's parts are recorded.
func (b *batch) end(ctx context.Context) {
	b.write(ctx)
}

func (b *batch) ofTenant(tenant id.UUID) error {
	if b.lost != nil {
		return b.lost
	}
	return b.failed[tenant]
}

func (b *batch) write(ctx context.Context) {
	set, parts := b.set, b.kept
	b.set, b.kept = nil, nil
	if set == nil || len(parts) == 0 || b.lost != nil {
		return
	}
	b.lost = b.writeSet(ctx, set, parts)
}

// writeSet writes a set: its objects are written and read back, each part's rows are read from them and compared with
// what they were, and then the parts are recorded.
func (b *batch) writeSet(ctx context.Context, set *fileSet, parts []kept) error {
	bodies, objects, err := set.close()
	if err != nil {
		return err
	}
	f, err := days.AddFile(ctx, b.k.DB, days.File{ID: db.NewID(), Day: b.day, Objects: objects})
	if err != nil {
		return err
	}
	var files [len(history.Open)]*parquet.File
	for table, body := range bodies {
		if body == nil {
			continue
		}
		if err := b.k.put(ctx, objectName(table, f.Day, f.ID), body); err != nil {
			return err
		}
		if files[table], err = openTable(bytes.NewReader(body), int64(len(body))); err != nil {
			return err
		}
	}
	for _, p := range parts {
		rows, err := readRows(files, p.places)
		if err != nil {
			return err
		}
		if rows.Sum() != p.sum {
			return fmt.Errorf("%s: %w", f.ID, errDiffers)
		}
	}
	whole := true
	for _, p := range parts {
		err := p.record(ctx, f, days.Placed{Places: p.places, Bytes: f.Bytes() * p.size / set.size})
		if ctx.Err() != nil || db.IsUnavailable(err) {
			return err
		}
		if err != nil {
			b.failed[p.tenant], whole = err, false
		}
	}
	if !whole {
		return nil // the set is written again without the parts that were not recorded
	}
	return days.Written(ctx, b.k.DB, f)
}
