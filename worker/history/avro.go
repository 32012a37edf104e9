package history

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
)

// avro writes values in Avro's binary encoding (Apache Avro 1.11, "Binary encoding"). Manifests need no more of it.
type avro struct{ bytes.Buffer }

func (a *avro) long(n int64) {
	var b [binary.MaxVarintLen64]byte
	a.Write(b[:binary.PutVarint(b[:], n)]) // zigzag, as Avro has it
}

func (a *avro) bytes(b []byte) {
	a.long(int64(len(b)))
	a.Write(b)
}

func (a *avro) string(s string) { a.bytes([]byte(s)) }

// some begins a value of a union of null and another type, which is not null.
func (a *avro) some() { a.long(1) }

// avroFile is an object container file. The same content gives the same bytes.
func avroFile(schema string, meta map[string]string, records [][]byte) []byte {
	var f, data avro
	f.WriteString("Obj\x01")
	meta = maps.Clone(meta)
	meta["avro.schema"], meta["avro.codec"] = schema, "null"
	f.long(int64(len(meta)))
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		f.string(key)
		f.string(meta[key])
	}
	f.long(0)
	for _, r := range records {
		data.Write(r)
	}
	sum := sha256.Sum256(data.Bytes())
	sync := sum[:16]
	f.Write(sync)
	if len(records) > 0 {
		f.long(int64(len(records)))
		f.bytes(data.Bytes())
		f.Write(sync)
	}
	return f.Bytes()
}
