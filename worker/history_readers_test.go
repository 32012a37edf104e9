package worker

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	var first id.UUID
	h.query("SELECT id, convert_from(data, 'UTF8') FROM events WHERE tenant_id = $1 AND data IS NOT NULL ORDER BY id LIMIT 1", []any{&first, &data}, tenants[1])
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
	// An expunged event keeps its row, without its data.
	h.expunge(store, tenants[1], first)
	h.work(h.keeper(store))
	r = h.readElsewhere(store, tenants[1], s3...)
	if len(r.DuckDB.Data) != 1 || r.DuckDB.Data[0][0] == data {
		t.Errorf("DuckDB reads the data %v of an expunged event", r.DuckDB.Data)
	}
	sameCounts(t, "events after one was expunged", r.Iceberg["events"], books)
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

// readSpark is what Spark reads in the open tables, as Iceberg or as Parquet files.
type readSpark struct {
	Events, Deliveries, Attempts, Bytes, Data json.RawMessage
}

// Spark counts what the books have: through a catalog of Iceberg that is a folder, and in the files without their
// metadata.
func TestSparkReadsStoredHistory(t *testing.T) {
	t.Parallel()
	const python = "../bin/spark/bin/python"
	if _, err := os.Stat(python); err != nil {
		need.Missing(t, "bin/spark", "`make bin/spark` installs Spark, which reads stored history.")
	}
	need.Programs(t, "java")
	jars, err := filepath.Glob("../bin/spark/jars/iceberg-spark-runtime-*.jar")
	if err != nil || len(jars) != 1 {
		t.Fatal(jars, err)
	}
	h := newHouse(t)
	store, path := h.folder()
	data := map[string]int64{}
	for i := range 3 {
		tenant := h.tenant()
		ep := h.endpoint(tenant, "http://127.0.0.1:1", nil)
		for ago := 5; ago <= 6; ago++ {
			day := h.historyDay(tenant, ep, ago, 40+i)
			var n int64
			h.query("SELECT sum(octet_length(data)) FROM events WHERE tenant_id = $1 AND created_at >= $2 AND created_at < $2::timestamptz + interval '1 day'", []any{&n}, tenant, day)
			data[id.Tenant.Format(tenant)+" "+day.Format(time.DateOnly)] = n
		}
	}
	h.work(h.keeper(store))
	books := h.booksOf()
	if len(books) != 6 {
		t.Fatalf("%d days are stored", len(books))
	}
	twice := map[string]int64{}
	for key, n := range books {
		twice[key] = 2 * n
	}
	jar, err := filepath.Abs(jars[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/read_spark.py", path, jar)
	cmd.Env = append(os.Environ(), "SPARK_SCRATCH="+t.TempDir(), "SPARK_LOCAL_IP=127.0.0.1", "PYSPARK_PYTHON="+python)
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	_, result, found := strings.Cut(string(text), "RESULT ")
	var read map[string]readSpark
	if err == nil && found {
		err = json.Unmarshal([]byte(result), &read)
	}
	if err != nil || len(read) != 2 {
		t.Fatalf("%v: %s\n%s", err, text, said.String())
	}
	for way, r := range read {
		sameCounts(t, way+": deliveries by tenant and day", r.Deliveries, books)
		sameCounts(t, way+": events by tenant and day", r.Events, books)
		sameCounts(t, way+": attempts by tenant and day", r.Attempts, twice)
		sameCounts(t, way+": bytes by tenant and day", r.Bytes, data)
		sameCounts(t, way+": lengths of data by tenant and day", r.Data, data)
	}
}
