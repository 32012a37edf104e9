package db

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"posthorn/domain/id"
)

// registerTypes registers the project's ids on a connection, and the arrays that batches consist of. Each array is
// encoded by one straight loop; the driver would look up a plan for every element.
func registerTypes(m *pgtype.Map, b *buffers) {
	element := &pgtype.Type{Name: "uuid", OID: pgtype.UUIDOID, Codec: idCodec{}}
	m.RegisterType(element)
	m.RegisterType(&pgtype.Type{
		Name:  "timestamptz",
		OID:   pgtype.TimestamptzOID,
		Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	for _, a := range []struct {
		name         string
		oid, element uint32
		plans        func(any) pgtype.EncodePlan
	}{
		{"_uuid", pgtype.UUIDArrayOID, pgtype.UUIDOID, plan(b, pgtype.UUIDOID, of[id.UUID](16), appendID)},
		{"_int2", pgtype.Int2ArrayOID, pgtype.Int2OID, plan(b, pgtype.Int2OID, of[int16](2), appendInt2)},
		{"_int4", pgtype.Int4ArrayOID, pgtype.Int4OID, plan(b, pgtype.Int4OID, of[int32](4), appendInt4)},
		{"_int8", pgtype.Int8ArrayOID, pgtype.Int8OID, plan(b, pgtype.Int8OID, of[int64](8), appendInt8)},
		{"_bool", pgtype.BoolArrayOID, pgtype.BoolOID, plan(b, pgtype.BoolOID, of[bool](1), appendBool)},
		{"_bytea", pgtype.ByteaArrayOID, pgtype.ByteaOID, plan(b, pgtype.ByteaOID, allOf[[]byte], appendBytes)},
		{"_text", pgtype.TextArrayOID, pgtype.TextOID, plan(b, pgtype.TextOID, allOf[string], appendText)},
		{"_timestamptz", pgtype.TimestamptzArrayOID, pgtype.TimestamptzOID, either(
			plan(b, pgtype.TimestamptzOID, of[time.Time](8), appendTime),
			plan(b, pgtype.TimestamptzOID, of[*time.Time](8), appendTimeOrNull))},
	} {
		known, _ := m.TypeForOID(a.element)
		m.RegisterType(&pgtype.Type{
			Name: a.name,
			OID:  a.oid,
			Codec: arrayCodec{
				&pgtype.ArrayCodec{ElementType: known},
				a.plans,
			},
		})
	}
}

type idCodec struct{ pgtype.UUIDCodec }

func (c idCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		if _, ok := value.(id.UUID); ok {
			return encodeID{}
		}
	}
	return c.UUIDCodec.PlanEncode(m, oid, format, value)
}

func (c idCodec) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if format == pgtype.BinaryFormatCode {
		if _, ok := target.(*id.UUID); ok {
			return scanID{}
		}
	}
	return c.UUIDCodec.PlanScan(m, oid, format, target)
}

type encodeID struct{}

func (encodeID) Encode(value any, buf []byte) ([]byte, error) {
	uuid := value.(id.UUID)
	return append(buf, uuid[:]...), nil
}

type scanID struct{}

func (scanID) Scan(src []byte, target any) error {
	if len(src) != 16 {
		return fmt.Errorf("cannot scan %d bytes into an id", len(src))
	}
	copy(target.(*id.UUID)[:], src)
	return nil
}

// arrayCodec encodes slices of one Go type by a straight loop and leaves everything else to the driver.
type arrayCodec struct {
	*pgtype.ArrayCodec
	plan func(any) pgtype.EncodePlan
}

func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		if p := c.plan(value); p != nil {
			return p
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// arrayPlan writes PostgreSQL's binary array: dimensions, null flag, element type, then length and lower bound, then
// each element after its length (array_recv in the server's source).
type arrayPlan[T any] struct {
	buffers *buffers
	element uint32
	size    func([]T) int          // of all elements together without their lengths, in bytes
	append  func([]byte, T) []byte // with the length before
}

// of is the size of elements that have the same size.
func of[T any](one int) func([]T) int { return func(list []T) int { return len(list) * one } }

func allOf[T string | []byte](list []T) (bytes int) {
	for _, v := range list {
		bytes += len(v)
	}
	return bytes
}

func plan[T any](b *buffers, element uint32, size func([]T) int, appendOne func([]byte, T) []byte,
) func(any) pgtype.EncodePlan {
	p := arrayPlan[T]{b, element, size, appendOne}
	return func(value any) pgtype.EncodePlan {
		if _, ok := value.([]T); ok {
			return p
		}
		return nil
	}
}

func either(first, second func(any) pgtype.EncodePlan) func(any) pgtype.EncodePlan {
	return func(value any) pgtype.EncodePlan {
		if p := first(value); p != nil {
			return p
		}
		return second(value)
	}
}

func (p arrayPlan[T]) Encode(value any, buf []byte) ([]byte, error) {
	list := value.([]T)
	if list == nil {
		return nil, nil
	}
	dimensions := uint32(min(len(list), 1))
	buf = p.buffers.room(buf, arrayHeader+len(list)*lengthBytes+p.size(list))
	buf = binary.BigEndian.AppendUint32(buf, dimensions)
	buf = binary.BigEndian.AppendUint32(buf, 0)
	buf = binary.BigEndian.AppendUint32(buf, p.element)
	if dimensions == 0 {
		return buf, nil
	}
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(list)))
	buf = binary.BigEndian.AppendUint32(buf, 1)
	for _, v := range list {
		buf = p.append(buf, v)
	}
	return buf, nil
}

// The sizes of an array's header and of the length before each element, in bytes.
const (
	arrayHeader = 20
	lengthBytes = 4
)

func appendID(buf []byte, uuid id.UUID) []byte {
	return append(binary.BigEndian.AppendUint32(buf, 16), uuid[:]...)
}

func appendInt2(buf []byte, n int16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(buf, 2), uint16(n))
}

func appendInt4(buf []byte, n int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(buf, 4), uint32(n))
}

func appendInt8(buf []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(n))
}

func appendBool(buf []byte, b bool) []byte {
	if b {
		return append(buf, 0, 0, 0, 1, 1)
	}
	return append(buf, 0, 0, 0, 1, 0)
}

// appendBytes writes the length -1 for NULL.
func appendBytes(buf, b []byte) []byte {
	if b == nil {
		return binary.BigEndian.AppendUint32(buf, 0xffffffff)
	}
	return append(binary.BigEndian.AppendUint32(buf, uint32(len(b))), b...)
}

func appendText(buf []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(buf, uint32(len(s))), s...)
}

// epoch2000 is PostgreSQL's zero of time, in microseconds since 1970.
const epoch2000 = 946684800 * 1e6

func appendTime(buf []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(buf, 8), uint64(t.UnixMicro()-epoch2000))
}

// appendTimeOrNull writes the length -1 for NULL.
func appendTimeOrNull(buf []byte, t *time.Time) []byte {
	if t == nil {
		return binary.BigEndian.AppendUint32(buf, 0xffffffff)
	}
	return appendTime(buf, *t)
}
