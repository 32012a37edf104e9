package static

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var (
	declared = regexp.MustCompile(`--([a-z0-9-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\);`)
	themes   = []string{"light", "dark"}
)

// tokens reads the colors of a style sheet: name -> light, dark.
func tokens(t *testing.T, css string) map[string][2]color {
	t.Helper()
	found := map[string][2]color{}
	for _, m := range declared.FindAllStringSubmatch(css, -1) {
		found[m[1]] = [2]color{mustColor(m[2][1:]), mustColor(m[3][1:])}
	}
	return found
}

func sheet(t *testing.T) map[string][2]color {
	t.Helper()
	css, err := files.ReadFile("css/1-tokens.css")
	if err != nil {
		t.Fatal(err)
	}
	found := tokens(t, string(css))
	if len(found) < 30 {
		t.Fatalf("read %d colors", len(found))
	}
	return found
}

// What is written on what, and which marks lie on which grounds.
var pairs = []struct {
	ink, grounds string
	ratio        float64
}{
	{"ink", "page surface sunken raised hover quiet-soft ok-soft warn-soft bad-soft accent-soft", 7},
	{"ink-2", "page surface sunken raised hover quiet-soft", 4.5},
	{"ink-3", "page surface sunken raised hover", 4.5},
	{"accent-ink", "page surface sunken raised hover accent-soft", 4.5},
	{"on-accent", "accent accent-hover", 4.5},
	{"on-bad", "bad bad-hover", 4.5},
	{"ok-ink", "page surface sunken raised hover ok-soft", 4.5},
	{"warn-ink", "page surface sunken raised hover warn-soft", 4.5},
	{"bad-ink", "page surface sunken raised hover bad-soft", 4.5},
	{"quiet-ink", "page surface raised quiet-soft", 4.5},
	// controls and marks
	{"line-strong", "page surface sunken raised", 3},
	{"accent", "page surface sunken raised", 3},
	{"ok", "page surface sunken raised ok-soft", 3},
	{"warn", "page surface sunken raised warn-soft", 3},
	{"bad", "page surface sunken raised bad-soft", 3},
	{"quiet", "page surface sunken raised quiet-soft", 3},
	{"phase-dns", "surface sunken", 3},
	{"phase-connect", "surface sunken", 3},
	{"phase-tls", "surface sunken", 3},
	{"phase-wait", "surface sunken", 3},
	{"phase-read", "surface sunken", 3},
}

func TestEveryPairOfColorsCanBeRead(t *testing.T) {
	t.Parallel()
	colors := sheet(t)
	for _, p := range pairs {
		for ground := range strings.FieldsSeq(p.grounds) {
			ink, ok := colors[p.ink]
			under, okUnder := colors[ground]
			if !ok || !okUnder {
				t.Fatalf("there is no token %s or %s", p.ink, ground)
			}
			for i, theme := range themes {
				if got := contrast(ink[i], under[i]); got < p.ratio {
					t.Errorf("%s: %s %s on %s %s is %.2f, want %.1f", theme, p.ink, ink[i], ground, under[i], got, p.ratio)
				}
			}
		}
	}
}

func TestTheDefaultAccentIsMadeLikeAnyOther(t *testing.T) {
	t.Parallel()
	want := tokens(t, strings.Join(accentTokens(mustColor(DefaultAccent)), ""))
	got := sheet(t)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("--%s: light-dark(%s, %s); in the sheet %s, %s", name, want[name][0], want[name][1], got[name][0], got[name][1])
		}
	}
	if got["surface"] != [2]color{lightSurface, darkSurface} || got["sunken"][0] != lightSunken || got["raised"][1] != darkRaised {
		t.Error("theme.go reckons with other grounds than the sheet has")
	}
}

func TestAnyAccentCanBeRead(t *testing.T) {
	t.Parallel()
	accents := []color{white, black, mustColor("ffff00"), mustColor("777777"), mustColor("00ff00"), mustColor("0000ff"), mustColor("ff0000")}
	for range 500 {
		accents = append(accents, color{rand.Float64(), rand.Float64(), rand.Float64()}.rounded())
	}
	base := sheet(t)
	for _, accent := range accents {
		got := tokens(t, strings.Join(accentTokens(accent), ""))
		for i, theme := range themes {
			for _, p := range []struct {
				ink, ground color
				ratio       float64
				what        string
			}{
				{got["on-accent"][i], got["accent"][i], 4.5, "text on the button"},
				{got["on-accent"][i], got["accent-hover"][i], 4.5, "text on the button under the pointer"},
				{got["accent-ink"][i], base["surface"][i], 4.5, "link"},
				{got["accent-ink"][i], base["sunken"][i], 4.5, "link on sunken"},
				{got["accent-ink"][i], got["accent-soft"][i], 4.5, "selected"},
			} {
				if r := contrast(p.ink, p.ground); r < p.ratio {
					t.Errorf("%s in %s: %s is %.2f", accent, theme, p.what, r)
				}
			}
		}
	}
}

func TestAnAccentHasASheetOfItsOwn(t *testing.T) {
	t.Parallel()
	for accent, want := range map[string]string{
		"ff6600":      "/theme/ff6600.css",
		"#FF6600":     "/theme/ff6600.css",
		DefaultAccent: "",
		"":            "",
		"red":         "",
		"ff660":       "",
		"ff6600;}":    "",
		"gggggg":      "",
	} {
		if got := ThemeURL(accent); got != want {
			t.Errorf("%q: %q, want %q", accent, got, want)
		}
	}
	answer := get(t, http.MethodGet, ThemeURL("ff6600"))
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/css; charset=utf-8" || len(tokens(t, string(body))) != 5 {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	for _, path := range []string{"/theme/", "/theme/ff6600", "/theme/red.css", "/theme/ff6600%7d.css"} {
		if answer := get(t, http.MethodGet, path); answer.StatusCode != 404 {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
}

func ExampleThemeURL() {
	fmt.Println(ThemeURL("#0A7D5A"))
	// Output: /theme/0a7d5a.css
}
