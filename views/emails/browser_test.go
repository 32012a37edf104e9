//go:build e2e

package emails_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"posthorn/tools/look"
	"posthorn/views/emails"
)

// TestLettersHoldUpInABrowser opens each letter as a mail program shows it, narrow and wide, in either theme: it fits,
// and its text can be read.
func TestLettersHoldUpInABrowser(t *testing.T) {
	t.Parallel()
	all := samples(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := emails.Page(all[r.URL.Path[1:]]).Render(r.Context(), w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	tab := look.Open(t).Tab(t, look.View{})
	for name := range all {
		tab.Open(server.URL + "/" + name)
		for _, v := range []look.View{{Width: 1000}, {Width: 1000, Dark: true}, {Width: 360, Dark: true}, {Width: 360}} {
			tab.Show(v)
			if wide := tab.Overflow(); wide != "" {
				t.Errorf("%s, %s: %s", name, v, wide)
			}
			for _, wrong := range tab.Violations(look.Contrast) {
				t.Errorf("%s, %s: %s", name, v, wrong)
			}
			tab.Picture("mail-"+name, v)
		}
	}
}
