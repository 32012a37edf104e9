package history

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"posthorn/domain/delivery"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// How files are laid out. A page is what a reader of a few rows reads of a column; a group is what an engine skips or
// scans.
const (
	pageBytes = 64 << 10
	groupRows = 50_000
	readAhead = 256 << 10 // of a footer, and of a column: a request to the store each
)

// schemas are the Parquet schemas of the open tables, from their columns.
var schemas = func() (all [len(history.Open)]*parquet.Schema) {
	for i, t := range history.Open {
		group := parquet.Group{}
		for _, f := range t.Fields {
			var node parquet.Node
			switch f.Type {
			case "string":
				node = parquet.String()
			case "binary":
				node = parquet.Leaf(parquet.ByteArrayType)
			case "date":
				node = parquet.Date()
			case "timestamptz":
				node = parquet.Timestamp(parquet.Microsecond)
			case "int":
				node = parquet.Int(32)
			case "long":
				node = parquet.Int(64)
			case "boolean":
				node = parquet.Leaf(parquet.BooleanType)
			default:
				panic("no Parquet type for " + f.Type)
			}
			if repeats[f.Name] {
				node = parquet.Encoded(node, &parquet.RLEDictionary)
			}
			node = parquet.Compressed(node, &zstd.Codec{Level: zstd.SpeedDefault})
			if !f.Required {
				node = parquet.Optional(node)
			}
			group[f.Name] = parquet.FieldID(node, f.ID)
		}
		all[i] = parquet.NewSchema(t.Name, group)
	}
	return all
}()

// repeats are columns that have few values in a file.
var repeats = map[string]bool{
	"tenant_id":   true,
	"day":         true,
	"type":        true,
	"event_type":  true,
	"endpoint_id": true,
	"status":      true,
	"reason":      true,
	"failure":     true,
	"url":         true,
	"version":     true,
}

// tableFile is an object of one open table while it is written.
type tableFile struct {
	table  int
	out    bytes.Buffer
	w      *parquet.GenericWriter[any]
	column map[string]parquet.LeafColumn
	object history.Object
	rows   []parquet.Row // not given to the writer yet
}

func newTableFile(table int) *tableFile {
	f := &tableFile{table: table, column: map[string]parquet.LeafColumn{}}
	for _, field := range history.Open[table].Fields {
		f.column[field.Name], _ = schemas[table].Lookup(field.Name)
	}
	f.w = parquet.NewGenericWriter[any](
		&f.out,
		schemas[table],
		parquet.PageBufferSize(pageBytes),
		parquet.MaxRowsPerRowGroup(groupRows),
		parquet.DataPageStatistics(true),
		// Texts of people are in no index of the footer.
		parquet.SkipPageBounds("row"),
		parquet.KeyValueMetadata("posthorn.schema", fmt.Sprint(history.OpenSchema)),
		parquet.CreatedBy("posthorn", "1", ""),
	)
	return f
}

// row is a row of an open table by the names of its columns. A column that is missing or nil is null.
type row map[string]any

func (f *tableFile) add(r row) error {
	values := make(parquet.Row, len(f.column))
	for name, c := range f.column {
		var v parquet.Value
		switch x := r[name].(type) {
		case nil:
		case string:
			v = parquet.ByteArrayValue([]byte(x))
		case []byte:
			if x != nil {
				v = parquet.ByteArrayValue(x)
			}
		case *string:
			if x != nil {
				v = parquet.ByteArrayValue([]byte(*x))
			}
		case int32:
			v = parquet.Int32Value(x)
		case int64:
			v = parquet.Int64Value(x)
		case bool:
			v = parquet.BooleanValue(x)
		case time.Time:
			v = parquet.Int64Value(x.UnixMicro())
		case *time.Time:
			if x != nil {
				v = parquet.Int64Value(x.UnixMicro())
			}
		default:
			return fmt.Errorf("a value of the column %s has the type %T", name, x)
		}
		level := c.MaxDefinitionLevel
		if v.IsNull() {
			if level == 0 {
				return fmt.Errorf("the column %s has no value", name)
			}
			level = 0
		}
		values[c.ColumnIndex] = v.Level(0, level, c.ColumnIndex)
	}
	tenant, at := r["tenant_id"].(string), r["created_at"].(time.Time).UnixMicro()
	o := &f.object
	if o.Rows == 0 {
		o.Low, o.High, o.LowAt, o.HighAt = tenant, tenant, at, at
	}
	o.Low, o.High, o.LowAt, o.HighAt = min(o.Low, tenant), max(o.High, tenant), min(o.LowAt, at), max(o.HighAt, at)
	o.Rows++
	f.rows = append(f.rows, values)
	return nil
}

func (f *tableFile) flush() error {
	_, err := f.w.WriteRows(f.rows)
	clear(f.rows)
	f.rows = f.rows[:0]
	return err
}

// fileSet is a set of files while it is written: an object for each open table.
type fileSet struct {
	day   time.Time
	files [len(history.Open)]*tableFile
	size  int64 // of the lines
}

func newFileSet(day time.Time) *fileSet {
	s := &fileSet{day: day}
	for i := range s.files {
		s.files[i] = newTableFile(i)
	}
	return s
}

// Rows as PostgreSQL writes them, as far as open tables have columns for them.
type (
	eventRow struct {
		CreatedAt  time.Time  `json:"created_at"`
		ID         hexID      `json:"id"`
		Type       string     `json:"type"`
		Key        *string    `json:"key"`
		Version    *string    `json:"version"`
		ExternalID *string    `json:"external_id"`
		OccurredAt *time.Time `json:"occurred_at"`
		DeliverAt  *time.Time `json:"deliver_at"`
	}
	deliveryRow struct {
		CreatedAt  time.Time  `json:"created_at"`
		ID         hexID      `json:"id"`
		EventID    hexID      `json:"event_id"`
		EndpointID hexID      `json:"endpoint_id"`
		EventType  string     `json:"event_type"`
		Status     int16      `json:"status"`
		Reason     int16      `json:"reason"`
		Attempts   int32      `json:"attempts"`
		LastStatus int32      `json:"last_status"`
		SettledAt  *time.Time `json:"settled_at"`
		ArchivedAt *time.Time `json:"archived_at"`
		ReplayOf   *hexID     `json:"replay_of"`
	}
	attemptRow struct {
		CreatedAt  time.Time `json:"created_at"`
		ID         hexID     `json:"id"`
		DeliveryID hexID     `json:"delivery_id"`
		EndpointID hexID     `json:"endpoint_id"`
		Number     int32     `json:"number"`
		Late       bool      `json:"late"`
		Status     int32     `json:"status"`
		Failure    int16     `json:"failure"`
		TotalUs    int32     `json:"total_us"`
		URL        string    `json:"url"`
	}
	ofDelivery struct {
		DeliveryID hexID `json:"delivery_id"`
	}
)

// hexID is an id as PostgreSQL writes it.
type hexID struct{ id.UUID }

// UnmarshalText reads an id.
func (u *hexID) UnmarshalText(text []byte) error {
	n, err := hex.Decode(u.UUID[:], bytes.ReplaceAll(text, []byte("-"), nil))
	if err == nil && n != len(u.UUID) {
		err = errors.New("an id is too short")
	}
	return err
}

func word(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// add adds the rows of a tenant's part, and returns their places: the first row and the number of rows in each table.
// If it fails, none of them is in the set.
func (s *fileSet) add(tenant id.UUID, lines []byte) (places []int64, err error) {
	var before [len(history.Open)]history.Object
	for i, f := range s.files {
		before[i] = f.object
	}
	if places, err = s.addRows(tenant, lines); err == nil {
		for _, f := range s.files {
			err = errors.Join(err, f.flush())
		}
		s.size += int64(len(lines))
		return places, err
	}
	for i, f := range s.files {
		f.object, f.rows = before[i], f.rows[:0]
	}
	return nil, err
}

func (s *fileSet) addRows(tenant id.UUID, lines []byte) (places []int64, err error) {
	rows, err := history.RowsOf(lines)
	if err != nil {
		return nil, err
	}
	for i, n := range []int{len(rows.Events), len(rows.Deliveries), len(rows.Attempts)} {
		places = append(places, s.files[i].object.Rows, int64(n))
	}
	of := row{"tenant_id": id.Tenant.Format(tenant), "day": int32(s.day.Unix() / 86400)}
	for _, line := range rows.Events {
		if err := s.addEvent(of, line); err != nil {
			return nil, err
		}
	}
	beside := [2]map[id.UUID]string{{}, {}}
	for i, lines := range [][]string{rows.DeadLetters, rows.Cancellations} {
		for _, line := range lines {
			var r ofDelivery
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				return nil, err
			}
			beside[i][r.DeliveryID.UUID] = line
		}
	}
	for _, line := range rows.Deliveries {
		if err := s.addDelivery(of, line, beside); err != nil {
			return nil, err
		}
	}
	if len(beside[0])+len(beside[1]) > 0 {
		return nil, errors.New("a dead letter or a cancellation has no delivery")
	}
	for _, line := range rows.Attempts {
		if err := s.addAttempt(of, line); err != nil {
			return nil, err
		}
	}
	return places, nil
}

func (s *fileSet) addEvent(of row, line string) error {
	rest, data, err := history.TakeBytes(line, history.ColumnData)
	if err != nil {
		return err
	}
	var r eventRow
	if err := json.Unmarshal([]byte(rest), &r); err != nil {
		return err
	}
	return s.files[history.OpenEvents].add(row{
		"tenant_id":    of["tenant_id"],
		"day":          of["day"],
		"created_at":   r.CreatedAt,
		"id":           id.Event.Format(r.ID.UUID),
		"type":         r.Type,
		"ordering_key": r.Key,
		"version":      r.Version,
		"external_id":  r.ExternalID,
		"occurred_at":  r.OccurredAt,
		"deliver_at":   r.DeliverAt,
		"data":         data,
		"data_bytes":   int64(len(data)),
		"row":          rest,
	})
}

// addDelivery adds a delivery with its dead letter and its cancellation, and deletes these from the maps.
func (s *fileSet) addDelivery(of row, line string, beside [2]map[id.UUID]string) error {
	var r deliveryRow
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return err
	}
	var replayOf any
	if r.ReplayOf != nil {
		replayOf = id.Delivery.Format(r.ReplayOf.UUID)
	}
	add := row{
		"tenant_id":   of["tenant_id"],
		"day":         of["day"],
		"created_at":  r.CreatedAt,
		"id":          id.Delivery.Format(r.ID.UUID),
		"event_id":    id.Event.Format(r.EventID.UUID),
		"endpoint_id": id.Endpoint.Format(r.EndpointID.UUID),
		"event_type":  r.EventType,
		"status":      delivery.Status(r.Status).String(),
		"reason":      word(delivery.Reason(r.Reason).String()),
		"attempts":    r.Attempts,
		"last_status": r.LastStatus,
		"settled_at":  r.SettledAt,
		"archived_at": r.ArchivedAt,
		"replay_of":   replayOf,
		"row":         line,
	}
	for i, name := range [...]string{"dead_letter", "cancellation"} {
		if text, found := beside[i][r.ID.UUID]; found {
			add[name] = text
			delete(beside[i], r.ID.UUID)
		}
	}
	return s.files[history.OpenDeliveries].add(add)
}

func (s *fileSet) addAttempt(of row, line string) error {
	rest, excerpt, err := history.TakeBytes(line, history.ColumnExcerpt)
	if err != nil {
		return err
	}
	var r attemptRow
	if err := json.Unmarshal([]byte(rest), &r); err != nil {
		return err
	}
	return s.files[history.OpenAttempts].add(row{
		"tenant_id":        of["tenant_id"],
		"day":              of["day"],
		"created_at":       r.CreatedAt,
		"id":               id.Attempt.Format(r.ID.UUID),
		"delivery_id":      id.Delivery.Format(r.DeliveryID.UUID),
		"endpoint_id":      id.Endpoint.Format(r.EndpointID.UUID),
		"number":           r.Number,
		"late":             r.Late,
		"status":           r.Status,
		"failure":          word(delivery.Failure(r.Failure).String()),
		"total_us":         r.TotalUs,
		"url":              r.URL,
		"response_excerpt": excerpt,
		"row":              rest,
	})
}

// close ends the files and returns their bodies and what they hold. A table without rows has no object.
func (s *fileSet) close() (bodies [len(history.Open)][]byte, objects [len(history.Open)]history.Object, err error) {
	for i, f := range s.files {
		if f.object.Rows == 0 {
			continue
		}
		if err := f.w.Close(); err != nil {
			return bodies, objects, err
		}
		f.object.Bytes = int64(f.out.Len())
		bodies[i], objects[i] = f.out.Bytes(), f.object
	}
	return bodies, objects, nil
}

// errColumn says that a file isn't one that was written here.
var errColumn = errors.New("the file has other columns or rows than it was written with")

// openTable opens a table's object.
func openTable(r io.ReaderAt, size int64) (f *parquet.File, err error) {
	defer recovered(&err)
	return parquet.OpenFile(r, size, parquet.SkipBloomFilters(true), parquet.OptimisticRead(true), parquet.ReadBufferSize(readAhead))
}

// recovered makes an error of a panic: bytes that were changed must not end the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errColumn, p)
	}
}

// column reads n values of a column of texts or bytes from a row on. Null is nil.
func column(f *parquet.File, name string, from, n int64) (values [][]byte, err error) {
	defer recovered(&err)
	leaf, found := f.Schema().Lookup(name)
	if !found {
		return nil, errColumn
	}
	for _, group := range f.RowGroups() {
		rows := group.NumRows()
		if from >= rows {
			from -= rows
			continue
		}
		take := min(rows-from, n-int64(len(values)))
		if take <= 0 {
			break
		}
		if values, err = readChunk(group.ColumnChunks()[leaf.ColumnIndex], from, take, values); err != nil {
			return nil, err
		}
		from = 0
	}
	if int64(len(values)) != n {
		return nil, errColumn
	}
	return values, nil
}

func readChunk(chunk parquet.ColumnChunk, from, n int64, values [][]byte) ([][]byte, error) {
	pages := chunk.Pages()
	defer func() { _ = pages.Close() }()
	if err := pages.SeekToRow(from); err != nil {
		return nil, err
	}
	var buffer [256]parquet.Value
	for n > 0 {
		page, err := pages.ReadPage()
		if err != nil {
			return nil, err
		}
		r := page.Values()
		for n > 0 {
			k, err := r.ReadValues(buffer[:min(n, int64(len(buffer)))])
			for _, v := range buffer[:k] {
				if v.IsNull() {
					values = append(values, nil)
				} else {
					values = append(values, append([]byte{}, v.ByteArray()...))
				}
			}
			n -= int64(k)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
		}
		parquet.Release(page)
	}
	return values, nil
}

// readRows reads the rows of a part from its files.
func readRows(files [len(history.Open)]*parquet.File, places []int64) (r history.Rows, err error) {
	if len(places) != 2*len(files) {
		return r, errColumn
	}
	var columns [len(history.Open)]map[string][][]byte
	var tables sync.WaitGroup
	var failed [len(history.Open)]error
	for i, names := range [...][]string{{"row", "data"}, {"row", "dead_letter", "cancellation"}, {"row", "response_excerpt"}} {
		from, n := places[2*i], places[2*i+1]
		of := map[string][][]byte{}
		columns[i] = of
		if n == 0 {
			continue
		}
		if files[i] == nil {
			failed[i] = errColumn
			continue
		}
		tables.Go(func() {
			for _, name := range names {
				var err error
				if of[name], err = column(files[i], name, from, n); err != nil {
					failed[i] = fmt.Errorf("%s.%s: %w", history.Open[i].Name, name, err)
					return
				}
			}
		})
	}
	tables.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return r, err
	}
	for i, line := range columns[history.OpenEvents]["row"] {
		r.Events = append(r.Events, history.PutBytes(string(line), history.ColumnData, columns[history.OpenEvents]["data"][i]))
	}
	of := columns[history.OpenDeliveries]
	for i, line := range of["row"] {
		r.Deliveries = append(r.Deliveries, string(line))
		if text := of["dead_letter"][i]; text != nil {
			r.DeadLetters = append(r.DeadLetters, string(text))
		}
		if text := of["cancellation"][i]; text != nil {
			r.Cancellations = append(r.Cancellations, string(text))
		}
	}
	for i, line := range columns[history.OpenAttempts]["row"] {
		r.Attempts = append(r.Attempts, history.PutBytes(string(line), history.ColumnExcerpt, columns[history.OpenAttempts]["response_excerpt"][i]))
	}
	// They are sorted by their deliveries' ids, which the database compares as the text sorts.
	for _, rows := range [][]string{r.DeadLetters, r.Cancellations} {
		slices.SortFunc(rows, func(a, b string) int {
			return strings.Compare(history.TextOf(a, "delivery_id"), history.TextOf(b, "delivery_id"))
		})
	}
	return r, nil
}
