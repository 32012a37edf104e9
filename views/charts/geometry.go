// Package charts draws charts on the server: lines and bars as SVG, each with a name, a table of the same numbers, and
// colors from the style sheet by class. The drawing stretches with the page; strokes and text do not.
package charts

import (
	"math"
	"strconv"
	"strings"
)

// The drawing's own units; the page stretches it.
const (
	width  = 1000.0
	height = 200.0
)

// scale maps values to heights: low is at the bottom and high at the top.
type scale struct {
	low, high float64
	steps     int // the axis has steps+1 lines at even distances
}

// niceScale is a scale from zero that includes a maximum and has round steps: 1, 2, 2.5 or 5 times a power of ten.
// Counted values have whole steps.
func niceScale(most float64, whole bool) scale {
	if !(most > 0) || math.IsInf(most, 0) {
		return scale{high: 1, steps: 1}
	}
	const steps = 4
	for _, n := range []int{steps, 2} {
		if whole && most < float64(n) {
			continue
		}
		step := niceStep(most/float64(n), whole)
		used := int(math.Ceil(most/step - 1e-9))
		return scale{high: step * float64(used), steps: used}
	}
	return scale{high: math.Ceil(most), steps: int(math.Ceil(most))}
}

// niceStep is the smallest round number that is at least v.
func niceStep(v float64, whole bool) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		step := m * power
		if step >= v*(1-1e-9) && (!whole || step == math.Trunc(step)) {
			return step
		}
	}
	return math.Ceil(v)
}

// y is a value's distance from the top, limited to the drawing.
func (s scale) y(v float64) float64 {
	if s.high <= s.low {
		return height
	}
	share := (v - s.low) / (s.high - s.low)
	return height * (1 - min(max(share, 0), 1))
}

// ticks are the values of the axis, from top to bottom.
func (s scale) ticks() []float64 {
	n := max(s.steps, 1)
	out := make([]float64, 0, n+1)
	for i := n; i >= 0; i-- {
		out = append(out, s.low+(s.high-s.low)*float64(i)/float64(n))
	}
	return out
}

// most is the largest number of several lists, without NaN.
func most(lists ...[]float64) float64 {
	top := 0.0
	for _, list := range lists {
		for _, v := range list {
			if v > top && !math.IsInf(v, 0) {
				top = v
			}
		}
	}
	return top
}

// barShare is the part of its slot that a bar fills.
const barShare = 0.72

// x is the position of the i-th of n points, each in the middle of its slot.
func x(i, n int) float64 { return width * (float64(i) + 0.5) / float64(n) }

// runs splits a list at missing numbers: the first index of each run, and the index after its last.
func runs(values []float64) [][2]int {
	var out [][2]int
	start := -1
	for i, v := range values {
		switch {
		case math.IsNaN(v) && start >= 0:
			out, start = append(out, [2]int{start, i}), -1
		case !math.IsNaN(v) && start < 0:
			start = i
		}
	}
	if start >= 0 {
		out = append(out, [2]int{start, len(values)})
	}
	return out
}

// linePath draws the values as a line with gaps for missing ones. A single value between gaps is a level line: see
// dotPath.
func linePath(values []float64, s scale) string {
	var b strings.Builder
	n := len(values)
	for _, run := range runs(values) {
		if run[1]-run[0] == 1 {
			continue
		}
		for i := run[0]; i < run[1]; i++ {
			command := "L"
			if i == run[0] {
				command = "M"
			}
			b.WriteString(command + num(x(i, n)) + " " + num(s.y(values[i])))
		}
	}
	return b.String()
}

// dotPath marks the values without neighbors: level lines as wide as a bar.
func dotPath(values []float64, s scale) string {
	var b strings.Builder
	n := len(values)
	wide := width / float64(max(n, 1)) * barShare
	for _, run := range runs(values) {
		if run[1]-run[0] == 1 {
			b.WriteString("M" + num(x(run[0], n)-wide/2) + " " + num(s.y(values[run[0]])) + "h" + num(wide))
		}
	}
	return b.String()
}

// areaPath is the area below linePath.
func areaPath(values []float64, s scale) string {
	var b strings.Builder
	n := len(values)
	for _, run := range runs(values) {
		if run[1]-run[0] == 1 {
			continue
		}
		b.WriteString("M" + num(x(run[0], n)) + " " + num(height))
		for i := run[0]; i < run[1]; i++ {
			b.WriteString("L" + num(x(i, n)) + " " + num(s.y(values[i])))
		}
		b.WriteString("L" + num(x(run[1]-1, n)) + " " + num(height) + "Z")
	}
	return b.String()
}

// bar is one rectangle.
type bar struct{ x, y, width, height float64 }

// stack stacks the values of one slot, the first at the bottom. Every value above zero has a minimum height.
func stack(i, n int, values []float64, s scale) []bar {
	share := width / float64(n)
	wide := share * barShare
	left := share*float64(i) + (share-wide)/2
	out := make([]bar, 0, len(values))
	bottom := height
	for _, v := range values {
		if !(v > 0) {
			out = append(out, bar{left, bottom, wide, 0})
			continue
		}
		high := max(height-s.y(v), 1.5)
		high = min(high, bottom)
		bottom -= high
		out = append(out, bar{left, bottom, wide, high})
	}
	return out
}

// num writes a coordinate, to a tenth of a unit.
func num(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}
