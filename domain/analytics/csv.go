package analytics

import (
	"bytes"
	"encoding/csv"
	"strings"
)

// CSV writes rows of cells as RFC 4180 says, each cell made harmless for spreadsheets.
func CSV(rows [][]string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	for _, row := range rows {
		safe := make([]string, len(row))
		for i, cell := range row {
			safe[i] = inert(cell)
		}
		_ = w.Write(safe) // a buffer takes everything
	}
	w.Flush()
	return b.Bytes()
}

// inert puts an apostrophe before what a spreadsheet would take for a formula (OWASP, "CSV Injection"). Numbers stay
// numbers.
func inert(cell string) string {
	if cell == "" || !strings.ContainsRune("=+-@\t\r\n|", rune(cell[0])) || number(cell) {
		return cell
	}
	return "'" + cell
}

func number(cell string) bool {
	digits := strings.TrimPrefix(cell, "-")
	return digits != "" && strings.Trim(digits, "0123456789.") == "" && strings.Count(digits, ".") <= 1
}
