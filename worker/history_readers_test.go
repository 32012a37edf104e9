package worker

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/tools/need"
	"posthorn/worker/history"
)

// readers is a Python with DuckDB and PyIceberg.
func readers(t testing.TB) string {
	t.Helper()
	const python = "../bin/readers/bin/python"
	if _, err := os.Stat(python); err != nil {
		need.Missing(t, "bin/readers", "`make bin/readers` installs DuckDB and PyIceberg, which read stored history.")
	}
	return python
}

// readHistory is what other programs read in the open tables.
type readHistory struct {
	Iceberg map[string]json.RawMessage `json:"iceberg"`
	DuckDB  struct {
		ByStatus [][2]any `json:"by status"`
		Attempts [][2]any `json:"attempts"`
		Bytes    [][3]any `json:"bytes"`
		Data     [][1]any `json:"data"`
		Files    [][3]any `json:"files"`
	} `json:"duckdb"`
	Files map[string]map[string]int `json:"files"`
}

func (h *house) readElsewhere(store history.Store, tenant id.UUID, s3 ...string) (r readHistory) {
	h.t.Helper()
	args := append([]string{"testdata/read_history.py", store.URL(), id.Tenant.Format(tenant)}, s3...)
	cmd := exec.CommandContext(h.t.Context(), readers(h.t), args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		h.t.Fatalf("%v: %s", err, text)
	}
	return r
}

// booksOf are the deliveries of the books by tenant and day, of days in storage.
func (h *house) booksOf() map[string]int64 {
	h.t.Helper()
	var text []byte
	h.query(`SELECT coalesce(jsonb_object_agg(b.tenant_id || ' ' || b.day, b.accepted), '{}')::text::bytea FROM books b
		JOIN history_days d ON d.tenant_id = b.tenant_id AND d.day = b.day WHERE d.state = 'stored'`, []any{&text})
	raw, books := map[string]int64{}, map[string]int64{}
	if err := json.Unmarshal(text, &raw); err != nil {
		h.t.Fatal(err)
	}
	for key, n := range raw {
		books[id.Tenant.Format(uuidOf(h.t, key[:36]))+key[36:]] = n
	}
	return books
}

func uuidOf(t testing.TB, text string) (u id.UUID) {
	t.Helper()
	if n, err := hex.Decode(u[:], []byte(strings.ReplaceAll(text, "-", ""))); err != nil || n != len(u) {
		t.Fatal(text, err)
	}
	return u
}

func sameCounts(t testing.TB, what string, text json.RawMessage, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// DuckDB and PyIceberg read the tables from a folder and from S3, and count what the books have.
func TestOtherProgramsReadStoredHistory(t *testing.T) {
	t.Parallel()
	readers(t)
	h := newHouse(t)
	store, _ := h.folder()
	h.readByOthers(store)
}

func TestOtherProgramsReadStoredHistoryFromS3(t *testing.T) {
	t.Parallel()
	readers(t)
	address := s3(t)
	store, err := history.Open(history.Where{URL: "s3://bucket/of/posthorn", Endpoint: address, Region: "us-east-1", Key: s3Key, Secret: s3Secret})
	if err != nil {
		t.Fatal(err)
	}
	newHouse(t).readByOthers(store, address, s3Key, s3Secret)
}

func (h *house) readByOthers(store history.Store, s3 ...string) {
	t := h.t
	tenants := []id.UUID{h.tenant(), h.tenant(), h.tenant()}
	sizes := map[string]int64{}
	for i, tenant := range tenants {
		ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
		for ago := 5; ago <= 6; ago++ {
			h.historyDay(tenant, ep, ago, 40+i)
		}
		var n int64
		h.query("SELECT sum(octet_length(data)) FROM events WHERE tenant_id = $1", []any{&n}, tenant)
		sizes[id.Tenant.Format(tenant)] = n
	}
	var data string
	h.query("SELECT convert_from(data, 'UTF8') FROM events WHERE tenant_id = $1 AND data IS NOT NULL ORDER BY id LIMIT 1", []any{&data}, tenants[1])
	h.work(h.keeper(store))
	books := h.booksOf()
	if len(books) != 6 {
		t.Fatalf("%d days are stored", len(books))
	}
	r := h.readElsewhere(store, tenants[1], s3...)
	twice := map[string]int64{}
	for day, n := range books {
		twice[day] = 2 * n
	}
	sameCounts(t, "deliveries by tenant and day", r.Iceberg["deliveries"], books)
	sameCounts(t, "events by tenant and day", r.Iceberg["events"], books)
	sameCounts(t, "attempts by tenant and day", r.Iceberg["attempts"], twice)
	if got := string(r.Iceberg["deliveries of tenant"]); got != "82" {
		t.Errorf("one tenant has %s deliveries", got)
	}
	for _, row := range r.DuckDB.Bytes {
		if want := sizes[row[0].(string)]; row[1] != float64(want) || row[2] != float64(want) {
			t.Errorf("DuckDB counts %v bytes, want %d", row, want)
		}
	}
	if len(r.DuckDB.ByStatus) != 9 || len(r.DuckDB.Attempts) != 3 || len(r.DuckDB.Data) != 1 || r.DuckDB.Data[0][0] != data {
		t.Errorf("DuckDB reads %v, want the data %s", r.DuckDB, data)
	}
	for table, n := range r.Files {
		if n["all"] != 2 || n["day"] != 1 || n["other tenant"] != 0 {
			t.Errorf("%s: an engine plans to read %v files of 2 days", table, n)
		}
	}
	// A day that comes back leaves the tables.
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -5)
	h.ask(tenants[1], day)
	h.work(h.keeper(store))
	r = h.readElsewhere(store, tenants[1], s3...)
	sameCounts(t, "deliveries after a day came back", r.Iceberg["deliveries"], h.booksOf())
	if got := string(r.Iceberg["deliveries of tenant"]); got != "41" {
		t.Errorf("the tenant has %s deliveries in the tables", got)
	}
}
