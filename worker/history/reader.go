package history

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/parquet-go/parquet-go"

	"posthorn/db"
	"posthorn/db/days"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// Reader reads parts from the store. It keeps the files of the last part open, which the next part often has too.
type Reader struct {
	db    *db.DB
	store Store
	open  id.UUID
	files [len(history.Open)]*parquet.File

	remotes []*remote
}

// NewReader returns a reader for one use: it is not safe for concurrent use.
func NewReader(d *db.DB, store Store) *Reader { return &Reader{db: d, store: store} }

// Source reads parts for requests.
type Source struct {
	db    *db.DB
	store Store
	slots chan struct{}
}

// sourceSlots is how many parts a process reads for requests at a time: each can need tens of megabytes.
const sourceSlots = 2

// NewSource returns a source that is safe for concurrent use.
func NewSource(d *db.DB, store Store) *Source {
	return &Source{db: d, store: store, slots: make(chan struct{}, sourceSlots)}
}

// Rows reads a part.
func (s *Source) Rows(ctx context.Context, part sql.HistoryPart) (history.Rows, error) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return history.Rows{}, ctx.Err()
	}
	defer func() { <-s.slots }()
	return NewReader(s.db, s.store).Rows(ctx, part)
}

// wholeBytes is the size up to which an object is read with one request.
const wholeBytes = 4 << 20

// Rows reads a part. If its lines are not those that were written, it returns an error.
func (r *Reader) Rows(ctx context.Context, part sql.HistoryPart) (rows history.Rows, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	if part.FileID == nil {
		lines, err := r.oldLines(ctx, folderOf(days.Day{Tenant: part.TenantID, At: part.Day})+part.Object, part)
		if err != nil {
			return rows, err
		}
		return history.RowsOf(lines)
	}
	if r.open != *part.FileID {
		if err := r.openSet(ctx, *part.FileID); err != nil {
			return rows, err
		}
	}
	if rows, err = readRows(r.files, part.Places); err != nil {
		return rows, r.differs(err)
	}
	if sum := rows.Sum(); !bytes.Equal(sum[:], part.Lines) {
		return rows, errDiffers
	}
	return rows, nil
}

// differs is the error of a file that can't be read, unless the store has failed.
func (r *Reader) differs(err error) error {
	for _, o := range r.remotes {
		if o.failed != nil {
			return o.failed
		}
	}
	return fmt.Errorf("%w: %w", errDiffers, err)
}

func (r *Reader) openSet(ctx context.Context, fileID id.UUID) error {
	f, err := days.FileOf(ctx, r.db, fileID)
	if err != nil {
		return err
	}
	r.open, r.files, r.remotes = id.UUID{}, [len(history.Open)]*parquet.File{}, nil
	var tables sync.WaitGroup
	var failed [len(history.Open)]error
	for table, o := range f.Objects {
		if o.Rows == 0 {
			continue
		}
		from := &remote{ctx: context.WithoutCancel(ctx), store: r.store, name: objectName(table, f.Day, f.ID), size: o.Bytes}
		r.remotes = append(r.remotes, from)
		tables.Go(func() {
			var at io.ReaderAt = from
			if o.Bytes <= wholeBytes {
				var body []byte
				if body, from.failed = r.store.Get(ctx, from.name, o.Bytes); from.failed != nil {
					failed[table] = from.failed
					return
				}
				at = bytes.NewReader(body)
			}
			r.files[table], failed[table] = openTable(at, o.Bytes)
		})
	}
	tables.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return r.differs(err)
	}
	r.open = fileID
	return nil
}

// remote reads an object piece by piece.
type remote struct {
	ctx   context.Context
	store Store
	name  string
	size  int64

	failed error
}

// ReadAt reads bytes of the object with one request.
func (o *remote) ReadAt(p []byte, from int64) (int, error) {
	if from >= o.size {
		return 0, io.EOF
	}
	ctx, cancel := context.WithTimeout(o.ctx, storeWithin)
	defer cancel()
	body, err := o.store.Range(ctx, o.name, from, min(int64(len(p)), o.size-from))
	n := copy(p, body)
	if err != nil {
		o.failed = err
	}
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// oldLines reads an object of lines, which an older version has written.
func (r *Reader) oldLines(ctx context.Context, name string, part sql.HistoryPart) ([]byte, error) {
	packed, err := r.store.Get(ctx, name, part.Bytes)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(packed); string(sum[:]) != string(part.Digest) {
		return nil, errDiffers
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	lines, err := io.ReadAll(io.LimitReader(z, part.Size+1))
	if err == nil && int64(len(lines)) != part.Size {
		err = errDiffers
	}
	return lines, err
}
