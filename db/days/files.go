package days

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// File is a set of files of a day: an object for each open table.
type File struct {
	ID      id.UUID
	Day     time.Time
	Objects [len(history.Open)]history.Object
	Version int64 // of the table, when the set was added
}

// Rows is how many rows the set has.
func (f File) Rows() (n int64) {
	for _, o := range f.Objects {
		n += o.Rows
	}
	return n
}

// Bytes is the size of its objects.
func (f File) Bytes() (n int64) {
	for _, o := range f.Objects {
		n += o.Bytes
	}
	return n
}

// Table is the state of the open tables' metadata.
type Table struct {
	UUIDs   []id.UUID
	Version int64 // a new one
	Stale   bool  // the files differ from those of the last metadata
	changes int64
}

// errFiles says that a file set is recorded for other tables.
var errFiles = errors.New("a set of files has another number of tables")

func fileOf(row sql.HistoryFile) (f File, err error) {
	f = File{ID: row.ID, Day: row.Day, Version: row.Version}
	var objects []history.Object
	if err := json.Unmarshal(row.Objects, &objects); err != nil {
		return f, err
	}
	if len(objects) != len(f.Objects) {
		return f, errFiles
	}
	copy(f.Objects[:], objects)
	return f, nil
}

// AddFile records a set of files before its objects are written, and returns it with its version.
func AddFile(ctx context.Context, d *db.DB, f File) (File, error) {
	objects, err := json.Marshal(f.Objects)
	if err != nil {
		return f, err
	}
	err = d.Console(ctx, func(q *sql.Queries) error {
		f.Version, err = q.AddHistoryFile(ctx, sql.AddHistoryFileParams{ID: f.ID, Day: f.Day, Objects: objects})
		return err
	})
	return f, err
}

// Written marks a set of files whose rows all belong to parts. It is published from then on.
func Written(ctx context.Context, d *db.DB, f File) error {
	objects, err := json.Marshal(f.Objects)
	if err != nil {
		return err
	}
	return d.Console(ctx, func(q *sql.Queries) error {
		return q.HistoryFileIsWritten(ctx, objects, f.ID)
	})
}

// NextDirty returns the first set after an id that has rows which belong to no part, or was not written completely.
func NextDirty(ctx context.Context, d *db.DB, after id.UUID) (f File, parts []sql.HistoryPart, found bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.DirtyHistoryFile(ctx, after)
		if found = err == nil; db.IsNoRows(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if f, err = fileOf(row); err != nil {
			return err
		}
		parts, err = q.HistoryPartsOfFile(ctx, &f.ID)
		return err
	})
	return f, parts, found, err
}

// MovePart records that a part's rows are in another set of files. It returns ErrRows if the part has changed.
func MovePart(ctx context.Context, d *db.DB, part Rewritten, to File, p Placed) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		n, err := q.MoveHistoryPart(ctx, sql.MoveHistoryPartParams{
			FileID:   &to.ID,
			Object:   to.ID.String(),
			Places:   p.Places,
			Bytes:    p.Bytes,
			TenantID: part.TenantID,
			Day:      part.Day,
			Low:      part.Low,
			OldFile:  part.FileID,
			OldLines: part.HistoryPart.Lines,
			Lines:    part.Sum[:],
			Size:     part.Size,
			Expunged: part.Expunged,
		})
		if err == nil && n != 1 {
			err = ErrRows
		}
		return err
	})
}

// FileOf returns a set of files.
func FileOf(ctx context.Context, d *db.DB, fileID id.UUID) (f File, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.HistoryFileByID(ctx, fileID)
		if err != nil {
			return err
		}
		f, err = fileOf(row)
		return err
	})
	return f, err
}

// DropFile forgets a set of files that no part names. It fails if one does.
func DropFile(ctx context.Context, d *db.DB, f File) error {
	return d.Console(ctx, func(q *sql.Queries) error { return q.DropHistoryFile(ctx, f.ID) })
}

// Changed records that the metadata must be written again, without the sets that are dirty.
func Changed(ctx context.Context, d *db.DB) error {
	return d.Console(ctx, func(q *sql.Queries) error { return q.HistoryChanges(ctx) })
}

// Files are the sets of files that are published, by day.
func Files(ctx context.Context, d *db.DB) (files []File, err error) {
	err = d.Console(db.ReadOnly(ctx), func(q *sql.Queries) error {
		rows, err := q.HistoryFiles(ctx)
		for _, row := range rows {
			f, err := fileOf(row)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		return err
	})
	return files, err
}

// TableToPublish draws a version for new metadata, if the files have changed since the last.
func TableToPublish(ctx context.Context, d *db.DB) (t Table, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		row, err := q.NextHistoryVersion(ctx)
		if db.IsNoRows(err) {
			return nil
		}
		t = Table{UUIDs: row.Uuids, Version: row.Version, Stale: err == nil, changes: row.Changes}
		return err
	})
	return t, err
}

// Published records that the metadata of a table are written.
func Published(ctx context.Context, d *db.DB, t Table) error {
	return d.Console(ctx, func(q *sql.Queries) error { return q.HistoryIsPublished(ctx, t.changes) })
}

// Together lists days of tenants that can be exported together with one, in the order of their tenants.
func Together(ctx context.Context, d *db.DB, day time.Time, retry time.Duration, most int32) (days []Day, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		rows, err := q.NextHistoryOfDay(ctx, sql.NextHistoryOfDayParams{Day: day, Seconds: retry.Seconds(), Limit: most})
		for _, r := range rows {
			days = append(days, Day{r.TenantID, r.Day, history.State(r.State)})
		}
		return err
	})
	return days, err
}

// Old lists days in storage, all of one date, that have objects of lines.
func Old(ctx context.Context, d *db.DB, retry time.Duration, most int32) (days []Day, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		rows, err := q.OldHistory(ctx, retry.Seconds(), most)
		for _, r := range rows {
			days = append(days, Day{r.TenantID, r.Day, history.State(r.State)})
		}
		return err
	})
	return days, err
}

// ForgetTenant forgets where a deleted tenant's rows are, and enters them in the books. Their files are then written
// again without them.
func ForgetTenant(ctx context.Context, d *db.DB, tenant id.UUID) error {
	return d.Console(ctx, func(q *sql.Queries) error { return q.ForgetHistoryOfTenant(ctx, tenant) })
}

// Purged records in the books that no object has a deleted tenant's rows any more.
func Purged(ctx context.Context, d *db.DB, tenant id.UUID) error {
	return d.Console(ctx, func(q *sql.Queries) error { return q.HistoryIsPurged(ctx, tenant) })
}

// HasLines reports whether a day has objects of lines, or had some when MayHaveLines was last called with true.
func (y Day) HasLines(ctx context.Context, d *db.DB) (has bool, err error) {
	err = d.Console(ctx, func(q *sql.Queries) error {
		has, err = q.HasHistoryLines(ctx, y.Tenant, y.At)
		return err
	})
	return has, err
}

// MayHaveLines records that objects of lines may be left although no part names them, or that none is left.
func (y Day) MayHaveLines(ctx context.Context, d *db.DB, may bool) error {
	return d.Console(ctx, func(q *sql.Queries) error {
		return q.SetHistoryLines(ctx, sql.SetHistoryLinesParams{Lines: may, TenantID: y.Tenant, Day: y.At})
	})
}
