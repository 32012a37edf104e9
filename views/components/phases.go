package components

import (
	"math"
	"strconv"
	"strings"
	"time"

	"posthorn/domain/show"
)

// phase is one piece of the bar, in thousandths of its width.
type phase struct {
	name, class string
	took        time.Duration
	x, width    string
}

// phaseWidth is the bar's width in its own units.
const phaseWidth = 1000

// pieces lays out the phases side by side. A phase that is not zero is at least 4 wide, so that it is visible. scale is
// the duration of the whole bar, so that the attempts of one delivery can be compared; 0: the attempt's own.
func pieces(p show.Phases, scale time.Duration) []phase {
	all := []phase{
		{name: "DNS", class: "phase-dns", took: p.DNS},
		{name: "connect", class: "phase-connect", took: p.Connect},
		{name: "TLS", class: "phase-tls", took: p.TLS},
		{name: "wait", class: "phase-wait", took: p.Wait},
		{name: "read", class: "phase-read", took: p.Read},
	}
	whole := float64(max(scale, total(p)))
	var shown []phase
	at := 0.0
	for _, one := range all {
		if one.took <= 0 {
			continue
		}
		width := max(float64(one.took)/whole*phaseWidth, 4)
		width = min(width, phaseWidth-at)
		if width <= 0 {
			width = 0
		}
		one.x, one.width = number(at), number(width)
		at += width
		shown = append(shown, one)
	}
	return shown
}

func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }

func total(p show.Phases) time.Duration {
	return max(p.DNS, 0) + max(p.Connect, 0) + max(p.TLS, 0) + max(p.Wait, 0) + max(p.Read, 0)
}

// phasesText describes the bar.
func phasesText(p show.Phases) string {
	if total(p) == 0 {
		return "No time was measured."
	}
	parts := []string{}
	for _, one := range pieces(p, 0) {
		parts = append(parts, one.name+" "+Duration(one.took))
	}
	return Duration(total(p)) + ": " + strings.Join(parts, ", ")
}
