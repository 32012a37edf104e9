package handlers

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"posthorn/domain/fault"
)

// A cursor is the position of the last row of a page, with a checksum over it and over the list that it continues: the
// list's name, tenant, filters, and order. It is not a credential: the list authorizes each page. The checksum rejects
// a cursor that was altered or that belongs to another list, which would otherwise give a wrong page without an error.
const cursorSum = 12

var errCursor = fault.InvalidField(
	"cursor",
	"cursor_invalid",
	"This cursor belongs to another list, or was altered. Send next_cursor of the previous page with the same filters and order, or start without a cursor.",
)

func makeCursor(list string, position []byte) string {
	out := make([]byte, cursorSum, cursorSum+len(position))
	copy(out, sumCursor(list, position))
	return base64.RawURLEncoding.EncodeToString(append(out, position...))
}

func readCursor(list, text string) (position []byte, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) <= cursorSum || len(raw) > 512 {
		return nil, errCursor
	}
	position = raw[cursorSum:]
	if subtle.ConstantTimeCompare(raw[:cursorSum], sumCursor(list, position)) != 1 {
		return nil, errCursor
	}
	return position, nil
}

func sumCursor(list string, position []byte) []byte {
	h := sha256.New()
	h.Write([]byte("posthorn cursor 1\x00"))
	h.Write([]byte(list))
	h.Write([]byte{0})
	h.Write(position)
	return h.Sum(nil)[:cursorSum]
}
