package worker

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"posthorn/db/sql"
	domainhistory "posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/worker/history"
)

// published checks that the newest metadata name existing files alone, which have n deliveries of a tenant. It reads
// the paths from the manifests' bytes: the tests with other programs read them as Iceberg.
func (h *house) published(store history.Store, tenant id.UUID, n int64) {
	h.t.Helper()
	ctx := h.t.Context()
	get := func(name string) []byte {
		h.t.Helper()
		body, err := store.Get(ctx, strings.TrimPrefix(name, store.URL()), 64<<20)
		if err != nil {
			h.t.Fatal(err)
		}
		return body
	}
	var rows int64
	for table, t := range domainhistory.Open {
		folder := "tables/" + t.Name + "/metadata/"
		var metadata struct {
			Snapshots []struct {
				List string `json:"manifest-list"`
			} `json:"snapshots"`
		}
		version := string(get(folder + "version-hint.text"))
		if err := json.Unmarshal(get(folder+"v"+version+".metadata.json"), &metadata); err != nil || len(metadata.Snapshots) != 1 {
			h.t.Fatalf("the metadata of %s: %v", t.Name, err)
		}
		for _, manifest := range named(get(metadata.Snapshots[0].List), store.URL(), ".avro") {
			for _, name := range named(get(manifest), store.URL(), ".parquet") {
				f, err := parquet.OpenFile(bytes.NewReader(get(name)), int64(len(get(name))))
				if err != nil {
					h.t.Fatal(err)
				}
				if table == domainhistory.OpenDeliveries {
					rows += rowsOf(h.t, f, id.Tenant.Format(tenant))
				}
			}
		}
	}
	if rows != n {
		h.t.Errorf("the open table has %d deliveries of the tenant, want %d", rows, n)
	}
}

// named are the addresses in a file of Avro that begin and end so.
func named(body []byte, begins, ends string) (names []string) {
	for _, piece := range strings.Split(string(body), begins)[1:] {
		if name, _, found := strings.Cut(piece, ends); found {
			names = append(names, begins+name+ends)
		}
	}
	return names
}

func rowsOf(t testing.TB, f *parquet.File, tenant string) (n int64) {
	t.Helper()
	leaf, found := f.Schema().Lookup("tenant_id")
	if !found {
		t.Fatal("the file has no tenants")
	}
	rows := make([]parquet.Row, 100)
	for _, group := range f.RowGroups() {
		r := group.Rows()
		for {
			k, err := r.ReadRows(rows)
			for _, row := range rows[:k] {
				if row[leaf.ColumnIndex].String() == tenant {
					n++
				}
			}
			if err != nil {
				break
			}
		}
		_ = r.Close()
	}
	return n
}

// Many small tenants share files, and each comes back from them alone.
func TestSmallTenantsShareFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	store, path := h.folder()
	tenants, before := make([]id.UUID, 12), map[id.UUID]string{}
	day := h.historyDay(h.tenant(), h.endpoint(h.tenant(), "http://127.0.0.1:1", nil), 5, 1)
	for i := range tenants {
		tenants[i] = h.tenant()
		h.historyDay(tenants[i], h.endpoint(tenants[i], "http://127.0.0.1:1", nil), 5, 5+i)
		before[tenants[i]] = h.historyRows(tenants[i])
	}
	h.work(h.keeper(store))
	if n := len(files(t, path)); n != 3 {
		t.Fatalf("13 tenants have %d objects", n)
	}
	for i, tenant := range tenants {
		h.published(store, tenant, int64(5+i))
	}
	h.ask(tenants[3], day)
	h.ask(tenants[7], day)
	h.work(h.keeper(store))
	for i, tenant := range tenants {
		want, n := "stored", int64(5+i)
		if i == 3 || i == 7 {
			want, n = "back", 0
			if h.historyRows(tenant) != before[tenant] {
				t.Errorf("tenant %d came back with other rows", i)
			}
		}
		if state, why := h.historyState(tenant, day); state != want {
			t.Errorf("tenant %d is %s, want %s: %s", i, state, want, why)
		}
		h.published(store, tenant, n)
	}
	if n := len(files(t, path)); n != 3 {
		t.Errorf("%d objects are left", n)
	}
	h.reconciled()
}

// The text of a row is taken apart and put together again without a difference, whatever people wrote into it.
func TestBytesLeaveARowAndComeBack(t *testing.T) {
	t.Parallel()
	for _, row := range []string{
		`{"tenant_id":"x","type":"a","data":"\\x7b7d","key":null}`,
		`{"tenant_id":"x","type":"a","data":"\\x","key":null}`,
		`{"tenant_id":"x","type":"a","data":null,"key":",\"data\":\"\\\\x00"}`,
		`{"tenant_id":"x","type":"a,\"data\":\"\\\\x41\"","data":"\\x00ff","key":",\"data\":\"\\\\x00"}`,
	} {
		rest, data, err := domainhistory.TakeBytes(row, domainhistory.ColumnData)
		if err != nil || domainhistory.PutBytes(rest, domainhistory.ColumnData, data) != row {
			t.Errorf("%s became %s and %x: %v", row, rest, data, err)
		}
		if null := strings.Contains(row, `"data":null`); null != (data == nil) {
			t.Errorf("%s has the bytes %v", row, data)
		}
	}
	if _, _, err := domainhistory.TakeBytes(`{"a":1,"data":"\\x7","b":1}`, "data"); err == nil {
		t.Error(fmt.Errorf("half a byte was read"))
	}
}

// pieces counts how often objects are read by pieces.
type pieces struct {
	history.Store
	read atomic.Int64
}

func (s *pieces) Range(ctx context.Context, name string, from, n int64) ([]byte, error) {
	s.read.Add(1)
	return s.Store.Range(ctx, name, from, n)
}

// Of a file that is too large to be read whole, a tenant's rows are read in few requests, and are those that it had.
func TestAPartOfALargeFileIsReadInFewPieces(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	store, _ := h.folder()
	var day time.Time
	small, large := h.tenant(), h.tenant()
	for tenant, n := range map[id.UUID]int{small: 20, large: 900} {
		day = h.historyDay(tenant, h.endpoint(tenant, "http://127.0.0.1:1", nil), 5, n)
	}
	// What doesn't compress: 6 KB for each event.
	h.exec(`UPDATE events SET data = (SELECT decode(string_agg(md5(random()::text || i || events.id), ''), 'hex') FROM generate_series(1, 380) i) WHERE tenant_id = $1`, large)
	h.work(h.keeper(store))
	for tenant, most := range map[id.UUID]int64{small: 5, large: 40} {
		counting := &pieces{Store: store}
		var parts []sql.HistoryPart
		if err := h.db.Console(t.Context(), func(q *sql.Queries) (err error) {
			parts, err = q.StoredPartsOf(t.Context(), tenant, day)
			return err
		}); err != nil || len(parts) == 0 {
			t.Fatal(len(parts), err)
		}
		for _, part := range parts { // their digest is compared
			if _, err := history.NewSource(h.db, counting).Rows(t.Context(), part); err != nil {
				t.Error(err)
			}
		}
		if n := counting.read.Load(); n == 0 || n > most {
			t.Errorf("%d requests for %d parts, want 1 to %d", n, len(parts), most)
		}
	}
}

// asOlderVersions makes of a tenant's stored day what older versions wrote: an object of compressed lines for each
// part.
func (h *house) asOlderVersions(store history.Store, tenant id.UUID, day time.Time) {
	h.t.Helper()
	ctx := h.t.Context()
	var parts []sql.HistoryPart
	if err := h.db.Console(ctx, func(q *sql.Queries) (err error) {
		parts, err = q.StoredPartsOf(ctx, tenant, day)
		return err
	}); err != nil || len(parts) == 0 {
		h.t.Fatal(len(parts), err)
	}
	for i, part := range parts {
		rows, err := history.NewSource(h.db, store).Rows(ctx, part)
		if err != nil {
			h.t.Fatal(err)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(rows.Lines()); err != nil {
			h.t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			h.t.Fatal(err)
		}
		name := fmt.Sprintf("%06d.000-abcdef.ndjson.gz", i)
		if err := store.Put(ctx, id.Tenant.Format(tenant)+"/"+day.Format(time.DateOnly)+"/"+name, packed.Bytes()); err != nil {
			h.t.Fatal(err)
		}
		digest := sha256.Sum256(packed.Bytes())
		h.exec("UPDATE history_parts SET object = $3, digest = $4, bytes = $5, file_id = NULL, places = '{}' WHERE tenant_id = $1 AND day = $2 AND low = $6",
			tenant, day, name, digest[:], packed.Len(), part.Low)
	}
	h.exec("UPDATE history_files SET dirty = true")
}

// TestObjectsOfOlderVersionsAreReadAndRewritten: a day that an older version stored comes back as it was, and a worker
// writes those that stay into the open tables.
func TestObjectsOfOlderVersionsAreReadAndRewritten(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	store, path := h.folder()
	back, stays := h.tenant(), h.tenant()
	day := h.historyDay(back, h.endpoint(back, "http://127.0.0.1:1", nil), 5, 7)
	h.historyDay(stays, h.endpoint(stays, "http://127.0.0.1:1", nil), 5, 9)
	before, other := h.historyRows(back), h.historyRows(stays)
	h.work(h.keeper(store))
	h.asOlderVersions(store, back, day)
	h.asOlderVersions(store, stays, day)
	h.ask(back, day)
	h.work(h.keeper(store))
	if h.historyRows(back) != before {
		t.Error("the day came back with other rows")
	}
	h.work(h.keeper(store))
	h.published(store, stays, 9)
	for _, name := range files(t, path) {
		if strings.HasSuffix(name, ".ndjson.gz") {
			t.Errorf("%s is left", name)
		}
	}
	h.ask(stays, day)
	h.work(h.keeper(store))
	if h.historyRows(stays) != other {
		t.Error("the day that was written again came back with other rows")
	}
	h.reconciled()
}
