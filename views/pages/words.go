package pages

import (
	"strconv"

	"posthorn/views/components"
)

// qrBox includes the quiet zone of four modules that readers require (ISO/IEC 18004, section 9.1).
func qrBox(q QR) string {
	side := strconv.Itoa(q.Size + 8)
	return "-4 -4 " + side + " " + side
}

// shortRoles leaves out the explanation, for tables.
func shortRoles(options []components.Option) []components.Option {
	short := make([]components.Option, len(options))
	for i, o := range options {
		o.Label = components.Sentence(o.Value)
		short[i] = o
	}
	return short
}
