package transform

import (
	"strings"
	"testing"
)

// TestAThinEventHasTheHeadAndALink: the data is not in it, and the link is made only for an expression that reads it.
func TestAThinEventHasTheHeadAndALink(t *testing.T) {
	t.Parallel()
	made := 0
	in := inputOf(`{"secret":1}`)
	in.Link = func() string { made++; return "https://posthorn.example.com/links/a.b" }
	thin, err := Parse([]byte(`{"preset":"thin","headers":{"Link":"\"<\" + link + \">\""}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := thin.Check(true); err != nil {
		t.Fatal(err)
	}
	out, err := Try(thin, in)
	want := `{"id":"evt_1","link":"https://posthorn.example.com/links/a.b","timestamp":"2026-11-24T10:00:00.000Z","type":"order.paid"}`
	if err != nil || string(out.Body) != want || out.ContentType != jsonType || len(out.Headers) != 1 || !strings.Contains(out.Headers[0].Value, "/links/a.b") {
		t.Errorf("%+v %s, %v", out, out.Body, err)
	}
	if made == 0 {
		t.Error("no link was made")
	}
	made = 0
	if _, err := Try(&Transformation{Kind: CEL, Expression: `data`}, in); err != nil || made != 0 {
		t.Errorf("an expression without a link made %d: %v", made, err)
	}
	if _, err := (Versions{{From: 1, T: &Transformation{Kind: CEL, Expression: `{"a": link + 1}`}}})[0].compile(); err == nil {
		t.Error("a link is a text")
	}
}
