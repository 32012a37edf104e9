package feed

import "posthorn/domain/fault"

// An offset has the position of a place above the bits of its index. It is at most maxOffset, which JavaScript reads
// exactly: enough for 4 trillion transactions. A transaction has fewer events than an index can count.
const (
	indexBits = 11
	maxOffset = 1<<53 - 1
)

// Offset is a place of the log as one number, for readers whose cursors are numbers. Later places have greater ones.
// Places before the log have none: the result is 0.
func (p Place) Offset() int64 {
	if p.Position < 0 || p.Position > maxOffset>>indexBits || p.Index >= 1<<indexBits {
		return 0
	}
	return p.Position<<indexBits | int64(p.Index)
}

// PlaceAt is the place of an offset of an event, without the event. The error is a *fault.Error with code
// feed_cursor_malformed and field cursor.
func PlaceAt(offset int64) (Place, error) {
	p := Place{Position: offset >> indexBits, Index: int(offset & (1<<indexBits - 1))}
	if offset < 0 || offset > maxOffset || p.Index == 0 {
		return Place{}, fault.InvalidField("cursor", errCursor.Code, "This is not the offset of an event that was read.")
	}
	return p, nil
}
