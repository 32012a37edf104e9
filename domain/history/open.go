package history

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

// OpenSchema is the version of the open tables' schema (docs/ops/history.md). A column that is added raises it; a
// column is never renamed, and its meaning never changes.
const OpenSchema = 1

// The open tables, in their order everywhere.
const (
	OpenEvents = iota
	OpenDeliveries
	OpenAttempts
	openTables
)

// Field is a column of an open table. ID is that of Iceberg and Parquet, and Type that of Iceberg.
type Field struct {
	ID       int
	Name     string
	Type     string
	Required bool
	Doc      string
}

// OpenTable is one of the open tables.
type OpenTable struct {
	Name   string
	Fields []Field
}

// Columns that each open table begins with, so that engines skip files by them.
const (
	FieldTenant  = 1
	FieldDay     = 2
	FieldCreated = 3
)

func first(created string) []Field {
	return []Field{
		{FieldTenant, "tenant_id", "string", true, "the tenant; rows are sorted by it"},
		{FieldDay, "day", "date", true, "the UTC day of the event or of the delivery; the partition"},
		{FieldCreated, "created_at", "timestamptz", true, created},
	}
}

// Open are the open tables with their columns.
var Open = [openTables]OpenTable{
	OpenEvents: {"events", append(first("when the event was accepted"),
		Field{4, "id", "string", true, "the event"},
		Field{5, "type", "string", true, "its event type"},
		Field{6, "ordering_key", "string", false, "its ordering key"},
		Field{7, "version", "string", false, "its payload version"},
		Field{8, "external_id", "string", false, "the producer's own id"},
		Field{9, "occurred_at", "timestamptz", false, "when it occurred, as the producer said"},
		Field{10, "deliver_at", "timestamptz", false, "when it was to be delivered"},
		Field{11, "data", "binary", false, "the exact bytes of its data; null: expunged"},
		Field{12, "data_bytes", "long", true, "the length of data; 0 if it was expunged"},
		Field{13, "row", "string", true, "the whole row as PostgreSQL wrote it, as JSON, with data emptied"},
	)},
	OpenDeliveries: {"deliveries", append(first("when the delivery was created"),
		Field{4, "id", "string", true, "the delivery"},
		Field{5, "event_id", "string", true, "its event"},
		Field{6, "endpoint_id", "string", true, "its endpoint"},
		Field{7, "event_type", "string", true, "the type of its event"},
		Field{8, "status", "string", true, "delivered, failed, or canceled"},
		Field{9, "reason", "string", false, "why it failed"},
		Field{10, "attempts", "int", true, "how many attempts it had"},
		Field{11, "last_status", "int", true, "the HTTP status of the last response; 0: none"},
		Field{12, "settled_at", "timestamptz", false, "when it was delivered, failed, or was canceled"},
		Field{13, "archived_at", "timestamptz", false, "when it was archived"},
		Field{14, "replay_of", "string", false, "the delivery that it repeats"},
		Field{15, "row", "string", true, "the whole row as PostgreSQL wrote it, as JSON"},
		Field{16, "dead_letter", "string", false, "the row of its dead letter, as JSON"},
		Field{17, "cancellation", "string", false, "the row of its cancellation, as JSON"},
	)},
	OpenAttempts: {"attempts", append(first("when the request started"),
		Field{4, "id", "string", true, "the attempt"},
		Field{5, "delivery_id", "string", true, "its delivery"},
		Field{6, "endpoint_id", "string", true, "the endpoint"},
		Field{7, "number", "int", true, "1 for the first attempt of its delivery"},
		Field{8, "late", "boolean", true, "the result came after the delivery had moved on"},
		Field{9, "status", "int", true, "the HTTP status; 0: no response"},
		Field{10, "failure", "string", false, "why there was no response"},
		Field{11, "total_us", "int", true, "its duration in microseconds"},
		Field{12, "url", "string", true, "where it was sent"},
		Field{13, "response_excerpt", "binary", false, "the start of the response's body"},
		Field{14, "row", "string", true, "the whole row as PostgreSQL wrote it, as JSON, with response_excerpt emptied"},
	)},
}

// The columns of bytes, which an open table holds as bytes instead of as text in its row.
const (
	ColumnData    = "data"
	ColumnExcerpt = "response_excerpt"
)

var errBytes = errors.New("a row has bytes that are not in hexadecimal")

// TakeBytes returns a row without the bytes of a column, and the bytes; nil if the column is null. row_to_json writes
// `"name":"\\x7b7d"`, and escapes each quote within a text: the first match is the column.
func TakeBytes(row, column string) (rest string, data []byte, err error) {
	mark := `,"` + column + `":"\\x`
	before, after, found := strings.Cut(row, mark)
	if !found {
		return row, nil, nil
	}
	text, after, ends := strings.Cut(after, `"`)
	if data, err = hex.DecodeString(text); err != nil || !ends {
		return "", nil, errBytes
	}
	if data == nil {
		data = []byte{}
	}
	return before + mark + `"` + after, data, nil
}

// PutBytes is the reverse of TakeBytes.
func PutBytes(row, column string, data []byte) string {
	if len(data) == 0 {
		return row
	}
	mark := `,"` + column + `":"\\x`
	before, after, found := strings.Cut(row, mark)
	if !found {
		return row
	}
	return before + mark + hex.EncodeToString(data) + after
}

// Rows are the rows of a part, as lines of an object have them: JSON, in the order in which they were read.
type Rows struct {
	Events, Deliveries, Attempts, DeadLetters, Cancellations []string
}

// RowsOf splits what AppendLine has joined, by table.
func RowsOf(lines []byte) (Rows, error) {
	by := map[string][]string{}
	for len(lines) > 0 {
		line, rest, found := bytes.Cut(lines, []byte("\n"))
		lines = rest
		text, begins := strings.CutPrefix(string(line), lineStart)
		table, row, splits := strings.Cut(text, lineMiddle)
		row, ends := strings.CutSuffix(row, "}")
		if !found || !begins || !splits || !ends || strings.Contains(table, `"`) {
			return Rows{}, ErrLines
		}
		by[table] = append(by[table], row)
	}
	return Rows{by["events"], by["deliveries"], by["attempts"], by["dead_letters"], by["cancellations"]}, nil
}

// Lines joins rows to the lines that they were.
func (r Rows) Lines() []byte {
	var b bytes.Buffer
	r.write(&b)
	return b.Bytes()
}

// Sum is the digest of the lines.
func (r Rows) Sum() (sum [sha256.Size]byte) {
	digest := sha256.New()
	b := bufio.NewWriterSize(digest, 64<<10)
	r.write(b)
	_ = b.Flush() // a digest takes everything
	digest.Sum(sum[:0])
	return sum
}

func (r Rows) write(b io.StringWriter) {
	for i, rows := range r.ByTable() {
		for _, row := range rows {
			for _, text := range [...]string{lineStart, Tables[i], lineMiddle, row, "}\n"} {
				_, _ = b.WriteString(text)
			}
		}
	}
}

// ByTable are the rows in the order of Tables.
func (r Rows) ByTable() [len(Tables)][]string {
	return [...][]string{r.Events, r.Deliveries, r.Attempts, r.DeadLetters, r.Cancellations}
}

// Object is one object of a set of files: a table's rows of some tenants on a day.
type Object struct {
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	Low    string `json:"low"`     // the first tenant
	High   string `json:"high"`    // the last tenant
	LowAt  int64  `json:"low_at"`  // the earliest created_at, in microseconds since 1970
	HighAt int64  `json:"high_at"` // the latest
}
