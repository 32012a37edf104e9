package charts

import (
	"math"
	"time"

	"github.com/a-h/templ"

	"posthorn/views/components"
)

// Class selects a series' color in the style sheet, for each theme.
type Class string

// The classes.
const (
	Accent Class = "accent"
	Second Class = "second"
	Good   Class = "ok"
	Failed Class = "bad"
)

// Series is a row of numbers, one for each time. NaN is a missing number.
type Series struct {
	Name   string
	Class  Class
	Values []float64
}

// Props describe a chart over time. ID is unique on the page.
type Props struct {
	ID     string
	Title  string
	Times  []time.Time // the start of each bucket, evenly spaced
	Series []Series
	Format func(float64) string // of values; default Count
	Max    float64              // the top of the axis; default: fits the values
	Fill   bool                 // fills the area below a Line
	Whole  bool                 // the values are counts
	Small  bool                 // half as high
	Days   bool                 // the buckets are days, in UTC
	Empty  string               // the text for a chart without numbers
}

// Count formats whole numbers.
func Count(v float64) string { return components.Count(int64(math.Round(v))) }

// Percent formats shares from 0 to 1, rounded down so that a failure never shows as 100%.
func Percent(v float64) string {
	return num(math.Floor(v*1000+1e-6)/10) + "%"
}

// Milliseconds formats durations.
func Milliseconds(v float64) string {
	return components.Duration(time.Duration(v * float64(time.Millisecond)))
}

func (p Props) format(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case p.Format != nil:
		return p.Format(v)
	}
	return Count(v)
}

// any reports whether there is anything to draw.
func (p Props) any() bool {
	for _, s := range p.Series {
		for _, v := range s.Values {
			if !math.IsNaN(v) && (v != 0 || !p.Whole) {
				return true
			}
		}
	}
	return false
}

func (p Props) lineScale() scale {
	if p.Max > 0 {
		return scale{high: p.Max, steps: 4}
	}
	lists := make([][]float64, len(p.Series))
	for i, s := range p.Series {
		lists[i] = s.Values
	}
	return niceScale(most(lists...), p.Whole)
}

// stackScale fits the highest stack.
func (p Props) stackScale() scale {
	sums := make([]float64, len(p.Times))
	for i := range p.Times {
		for _, v := range p.at(i) {
			if v > 0 {
				sums[i] += v
			}
		}
	}
	return niceScale(most(sums), true)
}

// at returns the values of one time, in the order of the series.
func (p Props) at(i int) []float64 {
	out := make([]float64, len(p.Series))
	for k, s := range p.Series {
		out[k] = math.NaN()
		if i < len(s.Values) {
			out[k] = s.Values[i]
		}
	}
	return out
}

const hourly = "15:04"

// layout is the format of a chart's times: hours up to two days, days beyond.
func (p Props) layout() string {
	if n := len(p.Times); n > 1 && p.Times[n-1].Sub(p.Times[0]) > 50*time.Hour {
		return "2 Jan"
	}
	return hourly
}

// axis returns the times below the drawing: the first, the last, and some in between.
func (p Props) axis() []int {
	switch n := len(p.Times); {
	case n == 0:
		return nil
	case n < 3:
		return []int{0}
	default:
		return []int{0, n / 4, n / 2, n * 3 / 4, n - 1}
	}
}

// clock is the moment of a label, so that a script can write it in the reader's time zone. Days are UTC days.
func (p Props) clock(i int, where string) templ.Attributes {
	if p.Days || where == "axis" && p.layout() != hourly {
		return nil
	}
	return templ.Attributes{"data-clock": where, "data-at": p.Times[i].UTC().Format(time.RFC3339)}
}

// label names a bucket, for its tooltip and for the table.
func (p Props) label(i int) string {
	if p.Days {
		return p.Times[i].UTC().Format("2 Jan")
	}
	return p.Times[i].UTC().Format("2 Jan 15:04") + " UTC"
}

// tip describes a bucket in words.
func (p Props) tip(i int) string {
	text := p.label(i)
	for k, v := range p.at(i) {
		text += "\n" + p.Series[k].Name + ": " + p.format(v)
	}
	return text
}

// hit is the hover area of a bucket.
func (p Props) hit(i int) (left, wide string) {
	share := width / float64(len(p.Times))
	return num(share * float64(i)), num(share)
}

// summary describes a chart in a sentence.
func (p Props) summary() string {
	text := p.Title
	for _, s := range p.Series {
		low, high, last, any := math.Inf(1), math.Inf(-1), 0.0, false
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				low, high, last, any = min(low, v), max(high, v), v, true
			}
		}
		if any {
			text += ". " + s.Name + ": from " + p.format(low) + " to " + p.format(high) + ", last " + p.format(last)
		}
	}
	return text + "."
}

func (p Props) empty() string {
	if p.Empty == "" {
		return "No data in this period."
	}
	return p.Empty
}
