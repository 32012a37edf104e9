package static

import (
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"strings"
)

// DefaultAccent is Posthorn's own accent. A provider that embeds the dashboard brings its own: ThemeURL.
const DefaultAccent = "2f4fe0"

// ThemePrefix is where ServeTheme is mounted: ThemePrefix + accent + ".css".
const ThemePrefix = "/theme/"

// ThemeURL is the address of the style sheet that sets an accent, written rrggbb. It is empty for an invalid accent,
// and for the default, which needs no sheet.
func ThemeURL(accent string) string {
	accent = strings.ToLower(strings.TrimPrefix(accent, "#"))
	if _, ok := parseColor(accent); !ok || accent == DefaultAccent {
		return ""
	}
	return ThemePrefix + accent + ".css"
}

// ServeTheme serves the style sheet of an accent. The shades are moved until they have WCAG's contrasts, so text in
// every accent and on it can be read.
func ServeTheme(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, ThemePrefix), ".css")
	c, valid := parseColor(name)
	if !ok || !valid {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = fmt.Fprintf(w, ":root{%s}\n", strings.Join(accentTokens(c), ""))
	}
}

// color is sRGB, each part from 0 to 1.
type color [3]float64

var (
	white = color{1, 1, 1}
	black = color{}
	// The grounds of accents, brightest and darkest in each theme. css/1-tokens.css has the same, and a test compares
	// them.
	lightSurface, lightSunken = color{1, 1, 1}, mustColor("f4f4f6")
	darkSurface, darkRaised   = mustColor("151518"), mustColor("1e1e23")
)

func parseColor(text string) (color, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != 3 {
		return color{}, false
	}
	return color{float64(b[0]) / 255, float64(b[1]) / 255, float64(b[2]) / 255}, true
}

func mustColor(text string) color {
	c, ok := parseColor(text)
	if !ok {
		panic("static: " + text + " is no color")
	}
	return c
}

func (c color) String() string {
	part := func(v float64) int { return int(math.Round(v * 255)) }
	return fmt.Sprintf("#%02x%02x%02x", part(c[0]), part(c[1]), part(c[2]))
}

// rounded is the color as it is written.
func (c color) rounded() color { return mustColor(c.String()[1:]) }

func (c color) mix(with color, share float64) color {
	var out color
	for i := range c {
		out[i] = c[i]*(1-share) + with[i]*share
	}
	return out
}

// luminance is WCAG's relative luminance.
func (c color) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast is WCAG's ratio of two colors, from 1 to 21.
func contrast(a, b color) float64 {
	la, lb := a.luminance(), b.luminance()
	return (max(la, lb) + 0.05) / (min(la, lb) + 0.05)
}

// The contrasts of WCAG 2.2 at level AA, with a little to spare for rounding: of text (1.4.3) and of controls
// (1.4.11).
const (
	textContrast    = 4.55
	controlContrast = 3.05
)

// reach moves a color towards another until it has a contrast against all of the grounds.
func (c color) reach(towards color, ratio float64, grounds ...color) color {
	for share := 0.0; share <= 1; share += 0.02 {
		moved, good := c.mix(towards, share).rounded(), true
		for _, g := range grounds {
			good = good && contrast(moved, g) >= ratio
		}
		if good {
			return moved
		}
	}
	return towards
}

// shades are the shades of an accent in one theme.
type shades struct {
	fill, hover color // of the main button, and under the pointer
	on          color // what is written on both
	ink         color // links and what is selected
	soft        color // the ground of what is selected
}

func shade(c, towards, surface, far color) shades {
	var s shades
	s.fill = c.reach(towards, controlContrast, surface, far)
	s.on = white
	if contrast(s.fill, white) < textContrast {
		s.on = black
	}
	away := white
	if s.on == white {
		away = black
	}
	s.fill = s.fill.reach(away, textContrast, s.on)
	s.hover = s.fill.mix(away, 0.14).rounded()
	s.soft = surface.mix(c, 0.1).rounded()
	s.ink = c.reach(towards, textContrast, surface, far, s.soft)
	return s
}

// accentTokens are the declarations that an accent sets, for both themes at once.
func accentTokens(c color) []string {
	light := shade(c, black, lightSurface, lightSunken)
	dark := shade(c, white, darkSurface, darkRaised)
	pair := func(name string, l, d color) string { return fmt.Sprintf("--%s:light-dark(%s,%s);", name, l, d) }
	return []string{
		pair("accent", light.fill, dark.fill),
		pair("accent-hover", light.hover, dark.hover),
		pair("on-accent", light.on, dark.on),
		pair("accent-ink", light.ink, dark.ink),
		pair("accent-soft", light.soft, dark.soft),
	}
}
