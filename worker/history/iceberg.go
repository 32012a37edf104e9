package history

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"posthorn/db/days"
	"posthorn/domain/history"
	"posthorn/domain/id"
)

// The metadata follow version 2 of the Iceberg table specification, as far as a table without deletes needs it. Readers
// resolve the fields of manifests by their ids.

// manifestSchema is the Avro schema of the entries of a manifest.
const manifestSchema = `{"type":"record","name":"manifest_entry","fields":[
{"name":"status","type":"int","field-id":0},
{"name":"snapshot_id","type":["null","long"],"default":null,"field-id":1},
{"name":"sequence_number","type":["null","long"],"default":null,"field-id":3},
{"name":"file_sequence_number","type":["null","long"],"default":null,"field-id":4},
{"name":"data_file","field-id":2,"type":{"type":"record","name":"r2","fields":[
{"name":"content","type":"int","field-id":134},
{"name":"file_path","type":"string","field-id":100},
{"name":"file_format","type":"string","field-id":101},
{"name":"partition","field-id":102,"type":{"type":"record","name":"r102","fields":[
{"name":"day","type":["null",{"type":"int","logicalType":"date"}],"default":null,"field-id":1000}]}},
{"name":"record_count","type":"long","field-id":103},
{"name":"file_size_in_bytes","type":"long","field-id":104},
{"name":"lower_bounds","field-id":125,"default":null,"type":["null",{"type":"array","logicalType":"map","items":{"type":"record","name":"k126_v127","fields":[
{"name":"key","type":"int","field-id":126},{"name":"value","type":"bytes","field-id":127}]}}]},
{"name":"upper_bounds","field-id":128,"default":null,"type":["null",{"type":"array","logicalType":"map","items":{"type":"record","name":"k129_v130","fields":[
{"name":"key","type":"int","field-id":129},{"name":"value","type":"bytes","field-id":130}]}}]},
{"name":"sort_order_id","type":["null","int"],"default":null,"field-id":140}]}}]}`

// listSchema is the Avro schema of a list of manifests.
const listSchema = `{"type":"record","name":"manifest_file","fields":[
{"name":"manifest_path","type":"string","field-id":500},
{"name":"manifest_length","type":"long","field-id":501},
{"name":"partition_spec_id","type":"int","field-id":502},
{"name":"content","type":"int","field-id":517},
{"name":"sequence_number","type":"long","field-id":515},
{"name":"min_sequence_number","type":"long","field-id":516},
{"name":"added_snapshot_id","type":"long","field-id":503},
{"name":"added_files_count","type":"int","field-id":504},
{"name":"existing_files_count","type":"int","field-id":505},
{"name":"deleted_files_count","type":"int","field-id":506},
{"name":"added_rows_count","type":"long","field-id":512},
{"name":"existing_rows_count","type":"long","field-id":513},
{"name":"deleted_rows_count","type":"long","field-id":514},
{"name":"partitions","field-id":507,"default":null,"type":["null",{"type":"array","element-id":508,"items":{"type":"record","name":"r508","fields":[
{"name":"contains_null","type":"boolean","field-id":509},
{"name":"lower_bound","type":["null","bytes"],"default":null,"field-id":510},
{"name":"upper_bound","type":["null","bytes"],"default":null,"field-id":511}]}}]}]}`

const (
	partitionSpec   = `[{"name":"day","transform":"identity","source-id":2,"field-id":1000}]`
	statusExisting  = 0
	versionHint     = "version-hint.text"
	metadataFormat  = "v%d.metadata.json"
	tablesFolder    = "tables/"
	lastPartitionID = 1000
)

func tableFolder(table int) string    { return tablesFolder + history.Open[table].Name + "/" }
func metadataFolder(table int) string { return tableFolder(table) + "metadata/" }

// objectName is the name of a table's object of a set of files.
func objectName(table int, day time.Time, file id.UUID) string {
	return tableFolder(table) + "data/day=" + day.Format(time.DateOnly) + "/" + file.String() + ".parquet"
}

func dayNumber(day time.Time) int32 { return int32(day.Unix() / 86400) }

func little32(n int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
func little64(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }

// listed is a manifest of the files of a month.
type listed struct {
	name      string
	body      []byte
	low, high time.Time // days
	files     int64
	rows      int64
	min, max  int64 // versions
}

// manifests are the manifests of a table's files, which are sorted by day.
func manifests(store string, table int, files []days.File) (all []listed) {
	for _, month := range split(files) {
		m := listed{low: month[0].Day, high: month[len(month)-1].Day, min: month[0].Version}
		var entries [][]byte
		for _, f := range month {
			o := f.Objects[table]
			if o.Rows == 0 {
				continue
			}
			entries = append(entries, entry(store+objectName(table, f.Day, f.ID), f, o))
			m.files++
			m.rows += o.Rows
			m.min, m.max = min(m.min, f.Version), max(m.max, f.Version)
		}
		if len(entries) == 0 {
			continue
		}
		m.body = avroFile(manifestSchema, map[string]string{
			"schema":            string(schemaJSON(table)),
			"schema-id":         "0",
			"partition-spec":    partitionSpec,
			"partition-spec-id": "0",
			"format-version":    "2",
			"content":           "data",
		}, entries)
		sum := sha256.Sum256(m.body)
		m.name = m.low.Format("2006-01-") + hex.EncodeToString(sum[:8]) + ".avro"
		all = append(all, m)
	}
	return all
}

// split splits files by month.
func split(files []days.File) (months [][]days.File) {
	for i, f := range files {
		if i == 0 || f.Day.Format("2006-01") != files[i-1].Day.Format("2006-01") {
			months = append(months, nil)
		}
		last := len(months) - 1
		months[last] = append(months[last], f)
	}
	return months
}

func entry(path string, f days.File, o history.Object) []byte {
	var a avro
	a.long(statusExisting)
	for range 3 { // snapshot, sequence number, file sequence number
		a.some()
		a.long(f.Version)
	}
	a.long(0) // content: data
	a.string(path)
	a.string("PARQUET")
	a.some()
	a.long(int64(dayNumber(f.Day)))
	a.long(o.Rows)
	a.long(o.Bytes)
	for _, bound := range []struct {
		tenant string
		at     int64
	}{{o.Low, o.LowAt}, {o.High, o.HighAt}} {
		a.some()
		a.long(3)
		for _, of := range []struct {
			field int64
			value []byte
		}{{history.FieldTenant, []byte(bound.tenant)}, {history.FieldDay, little32(dayNumber(f.Day))}, {history.FieldCreated, little64(bound.at)}} {
			a.long(of.field)
			a.bytes(of.value)
		}
		a.long(0)
	}
	a.some()
	a.long(1) // the order of sortOrder
	return a.Bytes()
}

// manifestList is the list of a snapshot's manifests.
func manifestList(folder string, version int64, of []listed) []byte {
	var records [][]byte
	for _, m := range of {
		var a avro
		a.string(folder + m.name)
		a.long(int64(len(m.body)))
		a.long(0) // partition spec
		a.long(0) // content: data
		a.long(m.max)
		a.long(m.min)
		a.long(m.max) // the snapshot that added it
		a.long(0)
		a.long(m.files)
		a.long(0)
		a.long(0)
		a.long(m.rows)
		a.long(0)
		a.some()
		a.long(1)
		a.WriteByte(0) // contains no null
		a.some()
		a.bytes(little32(dayNumber(m.low)))
		a.some()
		a.bytes(little32(dayNumber(m.high)))
		a.long(0)
		records = append(records, a.Bytes())
	}
	return avroFile(listSchema, map[string]string{
		"snapshot-id":        strconv.FormatInt(version, 10),
		"parent-snapshot-id": "null",
		"sequence-number":    strconv.FormatInt(version, 10),
		"format-version":     "2",
	}, records)
}

// object is JSON with a fixed order of names.
type object map[string]any

func schemaJSON(table int) json.RawMessage {
	var fields []object
	for _, f := range history.Open[table].Fields {
		fields = append(fields, object{"id": f.ID, "name": f.Name, "required": f.Required, "type": f.Type, "doc": f.Doc})
	}
	text, err := json.Marshal(object{"type": "struct", "schema-id": 0, "fields": fields})
	if err != nil {
		panic(err) // of constants
	}
	return text
}

// metadata is the metadata of a table with one snapshot.
func metadata(location string, table int, t days.Table, at time.Time, of []listed) ([]byte, error) {
	var rows, files int64
	for _, m := range of {
		rows, files = rows+m.rows, files+m.files
	}
	fields := history.Open[table].Fields
	snapshot := object{
		"snapshot-id":     t.Version,
		"sequence-number": t.Version,
		"timestamp-ms":    at.UnixMilli(),
		"manifest-list":   fmt.Sprintf("%smetadata/snap-%d.avro", location, t.Version),
		"schema-id":       0,
		"summary": object{
			"operation":        "overwrite",
			"total-records":    strconv.FormatInt(rows, 10),
			"total-data-files": strconv.FormatInt(files, 10),
		},
	}
	return json.MarshalIndent(object{
		"format-version":        2,
		"table-uuid":            t.UUIDs[table].String(),
		"location":              strings.TrimSuffix(location, "/"),
		"last-sequence-number":  t.Version,
		"last-updated-ms":       at.UnixMilli(),
		"last-column-id":        fields[len(fields)-1].ID,
		"current-schema-id":     0,
		"schemas":               []any{schemaJSON(table)},
		"default-spec-id":       0,
		"partition-specs":       []any{object{"spec-id": 0, "fields": json.RawMessage(partitionSpec)}},
		"last-partition-id":     lastPartitionID,
		"default-sort-order-id": 1,
		"sort-orders": []any{
			object{"order-id": 0, "fields": []any{}},
			object{"order-id": 1, "fields": []any{object{"source-id": history.FieldTenant, "transform": "identity", "direction": "asc", "null-order": "nulls-first"}}},
		},
		"properties":          object{"posthorn.schema": strconv.Itoa(history.OpenSchema), "write.parquet.compression-codec": "zstd"},
		"current-snapshot-id": t.Version,
		"snapshots":           []any{snapshot},
		"snapshot-log":        []any{object{"snapshot-id": t.Version, "timestamp-ms": at.UnixMilli()}},
		"metadata-log":        []any{},
		"refs":                object{"main": object{"snapshot-id": t.Version, "type": "branch"}},
		"statistics":          []any{},
	}, "", " ")
}

// publish writes the metadata of the tables if the files differ from those that the last metadata list. What names the
// newest metadata is written last, and then the older metadata are deleted.
func (k *Keeper) publish(ctx context.Context) error {
	t, err := days.TableToPublish(ctx, k.DB)
	if err != nil || !t.Stale {
		return err
	}
	files, err := days.Files(ctx, k.DB)
	if err != nil {
		return err
	}
	at := time.Now()
	for table := range history.Open {
		folder, location := metadataFolder(table), k.Store.URL()+tableFolder(table)
		names, err := k.Store.List(ctx, folder)
		if err != nil {
			return err
		}
		of := manifests(k.Store.URL(), table, files)
		current := map[string][]byte{}
		for _, m := range of {
			current[m.name] = m.body
		}
		current[fmt.Sprintf("snap-%d.avro", t.Version)] = manifestList(location+"metadata/", t.Version, of)
		newest := fmt.Sprintf(metadataFormat, t.Version)
		if current[newest], err = metadata(location, table, t, at, of); err != nil {
			return err
		}
		keep := map[string]bool{folder + newest: true, folder + versionHint: true}
		for name, body := range current {
			keep[folder+name] = true
			if name == newest || slices.Contains(names, folder+name) {
				continue
			}
			if err := k.put(ctx, folder+name, body); err != nil {
				return err
			}
		}
		if err := k.put(ctx, folder+newest, current[newest]); err != nil {
			return err
		}
		if err := k.put(ctx, folder+versionHint, []byte(strconv.FormatInt(t.Version, 10))); err != nil {
			return err
		}
		if err := k.deleteBut(ctx, folder, keep); err != nil {
			return err
		}
	}
	return days.Published(ctx, k.DB, t)
}
