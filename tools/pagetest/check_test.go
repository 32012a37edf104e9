package pagetest_test

import (
	"strings"
	"testing"

	"posthorn/tools/pagetest"
)

func TestActionsAreThoseOfFormsThatCanBeSent(t *testing.T) {
	t.Parallel()
	page := `<form action="/find"><button>Find</button></form><form method="post" action="/look"><input></form><form method="POST" action="/do"><p><button>Do</button></p></form>`
	if got := strings.Join(pagetest.Actions(page), " "); got != "/do" {
		t.Errorf("the actions are %s", got)
	}
}

func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		`<p>good</p>`: "",
		`<label for="a">A</label><input id="a" name="a">`:                    "",
		`<label>B <input name="b"></label>`:                                  "",
		`<input type="hidden" name="h">`:                                     "",
		`<button aria-label="Close"><svg aria-hidden="true"></svg></button>`: "",
		`<form><input aria-label="x" name="x"></form><form></form>`:          "",
		`<h1>Second</h1>`:              "2 h1",
		`<p id="a"></p><p id="a"></p>`: `the id "a"`,
		`<input name="q">`:             `"q" has no label`,
		`<label for="z"></label><textarea id="z" name="t"></textarea>`: `"t" has no label`,
		`<p style="color:red">x</p>`:                                   "inline style",
		`<style>p{}</style>`:                                           "inline style",
		`<script>1</script>`:                                           "script is inline",
		`<script src="//evil.example/x.js"></script>`:                  "script is inline or from elsewhere",
		`<p onclick="x()">x</p>`:                                       "handler onclick",
		`<a href=" JavaScript:x()">x</a>`:                              "leads to a script",
		`<a href="/x"><svg aria-hidden="true"></svg></a>`:              "a a has no name",
		`<button></button>`:                                            "a button has no name",
		`<svg></svg>`:                                                  "svg is neither",
		`<img src="/x">`:                                               "no alt",
		`<table><tr><td>x</td></tr></table>`:                           "no caption",
		`<p aria-describedby="none">x</p>`:                             "leads to no element",
		`<form><form></form></form>`:                                   "stands within a form",
		`<nav></nav>`:                                                  "a nav has no name",
		`<fieldset><input aria-label="x"></fieldset>`:                  "a fieldset has no name",
	} {
		got := pagetest.FragmentFaults(part)
		if want == "" && len(got) > 0 || want != "" && !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: %q, want %q", part, got, want)
		}
	}
	if got := pagetest.Faults("<p>bare</p>"); len(got) < 5 {
		t.Errorf("a page without anything: %q", got)
	}
}
