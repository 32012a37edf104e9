package charts

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var none = math.NaN()

func TestScalesEndOnRoundNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		most  float64
		whole bool
		high  float64
		steps int
	}{
		{0, true, 1, 1},
		{-3, true, 1, 1},
		{math.NaN(), false, 1, 1},
		{math.Inf(1), false, 1, 1},
		{1, true, 1, 1},
		{2, true, 2, 2},
		{3, true, 4, 2},
		{4, true, 4, 4},
		{7, true, 8, 4},
		{10, true, 10, 2},
		{100, true, 100, 4},
		{101, true, 150, 3},
		{1234, true, 1500, 3},
		{0.34, false, 0.4, 4},
		{1, false, 1, 4},
		{87.5, false, 100, 4},
	} {
		got := niceScale(c.most, c.whole)
		if math.Abs(got.high-c.high) > 1e-9 || got.steps != c.steps {
			t.Errorf("%v whole %t: %v in %d steps, want %v in %d", c.most, c.whole, got.high, got.steps, c.high, c.steps)
		}
	}
}

func TestScalesHoldWhatTheyAreMadeFor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-6, 1e12).Draw(t, "most")
		whole := rapid.Bool().Draw(t, "whole")
		s := niceScale(v, whole)
		if s.high < v*(1-1e-6) || s.high > 3*v && s.high > 1 || s.steps < 1 || s.steps > 5 {
			t.Fatalf("%v whole %t: %+v", v, whole, s)
		}
		if whole && s.high/float64(s.steps) != math.Trunc(s.high/float64(s.steps)) {
			t.Fatalf("%v: steps of %v", v, s.high/float64(s.steps))
		}
	})
}

func TestLinesHaveGapsAtMissingValues(t *testing.T) {
	t.Parallel()
	s := scale{high: 10, steps: 1}
	for _, c := range []struct {
		values           []float64
		line, dots, area string
	}{
		{nil, "", "", ""},
		{[]float64{none, none}, "", "", ""},
		{[]float64{0, 10}, "M250 200L750 0", "", "M250 200L250 200L750 0L750 200Z"},
		{[]float64{5}, "", "M140 100h720", ""},
		{[]float64{5, none, 5, 10}, "M625 100L875 0", "M35 100h180", "M625 200L625 100L875 0L875 200Z"},
		{[]float64{20, -5}, "M250 0L750 200", "", "M250 200L250 0L750 200L750 200Z"},
	} {
		if got := linePath(c.values, s); got != c.line {
			t.Errorf("%v: line %s, want %s", c.values, got, c.line)
		}
		if got := dotPath(c.values, s); got != c.dots {
			t.Errorf("%v: dots %s, want %s", c.values, got, c.dots)
		}
		if got := areaPath(c.values, s); got != c.area {
			t.Errorf("%v: area %s, want %s", c.values, got, c.area)
		}
	}
}

func TestStacksStayWithinTheDrawing(t *testing.T) {
	t.Parallel()
	got := stack(0, 2, []float64{5, none, 0, 5}, scale{high: 10, steps: 1})
	want := []bar{{70, 100, 360, 100}, {70, 100, 360, 0}, {70, 100, 360, 0}, {70, 0, 360, 100}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1, 1e9), 1, 6).Draw(t, "values")
		p := Props{Times: []time.Time{{}}, Series: make([]Series, len(values))}
		for i, v := range values {
			p.Series[i].Values = []float64{v}
		}
		bottom := height
		for i, b := range stack(0, 1, values, p.stackScale()) {
			if b.y < -1e-6 || b.height < 0 || b.y+b.height > bottom+1e-6 {
				t.Fatalf("bar %d of %v: %+v", i, values, b)
			}
			if values[i] > 1e-300 && b.height == 0 && b.y > 0 {
				t.Fatalf("bar %d of %v can't be seen", i, values)
			}
			bottom = b.y
		}
	})
}

func TestAFailureNeverShowsAs100Percent(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{1: "100%", 0.99999: "99.9%", 0.5: "50%", 0: "0%", 0.901: "90.1%"} {
		if got := Percent(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func render(t *testing.T, p Props) string {
	t.Helper()
	var b strings.Builder
	if err := Line(p).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if err := Bars(p).Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestChartsSayInWordsWhatTheyShow(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	p := Props{
		ID:     "c",
		Title:  "Latency",
		Format: Milliseconds,
		Series: []Series{
			{"p50", Accent, []float64{10, none, 30}},
			{"p95", Second, []float64{100, 200}},
		},
	}
	for i := range 3 {
		p.Times = append(p.Times, start.Add(time.Duration(i)*time.Hour))
	}
	html := render(t, p)
	for _, want := range []string{"Latency. p50: from 10 ms to 30 ms, last 30 ms. p95: from 100 ms to 200 ms, last 200 ms.", "21 Nov 01:00 UTC", "<caption", "200 ms"} {
		if !strings.Contains(html, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if strings.Contains(html, "NaN") || strings.Contains(html, "style=") {
		t.Error("a drawing holds NaN or a style")
	}
	p.Series, p.Empty = []Series{{"p50", Accent, []float64{none, none, none}}}, "No attempts in this hour."
	if html := render(t, p); strings.Contains(html, "<svg") || !strings.Contains(html, "No attempts in this hour.") {
		t.Error("a chart of nothing does not say so")
	}
}
