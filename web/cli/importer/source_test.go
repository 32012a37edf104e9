package importer

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// sources are the senders of every importer, reading from one address.
func sources(at string) map[string]Sender {
	return map[string]Sender{
		"svix":    Svix(at, "TOKEN", false),
		"convoy":  Convoy(at, "TOKEN", "p", time.Now()),
		"outpost": &outpostSender{source: newSource("Outpost", at, "TOKEN")},
	}
}

func TestAnImporterFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var there atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { there.Add(1) }))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/x?secret=1", status))
		for name, from := range sources(server.URL) {
			if _, err := from.tenants(t.Context()); err == nil || !strings.Contains(err.Error(), elsewhere.URL+"/x?...") {
				t.Errorf("%s, %d: %v", name, status, err)
			}
			if err := from.enable(t.Context(), tenant{id: "a"}, "b", true); err == nil {
				t.Errorf("%s, %d: a change followed the redirect", name, status)
			}
		}
		server.Close()
	}
	if n := there.Load(); n != 0 {
		t.Errorf("%d requests with the token went elsewhere", n)
	}
}

// A list that repeats itself, has only empty pages, or has new entries on every page ends as an error.
func TestAListThatNeverEndsIsAnError(t *testing.T) {
	t.Parallel()
	page := func(rows int, next string) string {
		list := "[" + strings.TrimSuffix(strings.Repeat(`{"id":"a","uid":"a","name":"a"},`, rows), ",") + "]"
		return fmt.Sprintf(`{"data":%[1]s,"iterator":%[2]q,"done":false,"models":%[1]s,"pagination":{"next":%[2]q}}`, list, next)
	}
	convoy := func(r *http.Request, rows int, next string) string {
		switch {
		case strings.HasSuffix(r.URL.Path, "/event-types"):
			return `{"data":[]}`
		case strings.HasSuffix(r.URL.Path, "/p"):
			return `{"data":{}}`
		}
		list := "[" + strings.TrimSuffix(strings.Repeat(`{"uid":"a"},`, rows), ",") + "]"
		return fmt.Sprintf(`{"data":{"content":%s,"pagination":{"has_next_page":true,"next_page_cursor":%q}}}`, list, next)
	}
	for mode, says := range map[string]string{"repeated": "twice", "empty": "are empty", "endless": "no end"} {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rows, next := 10_000, fmt.Sprint("page", asked.Add(1))
			switch mode {
			case "repeated":
				rows, next = 1, "page"
			case "empty":
				rows = 0
			}
			text := page(rows, next)
			if strings.HasPrefix(r.URL.Path, "/api/v1/projects") {
				text = convoy(r, rows, next)
			}
			_, _ = io.WriteString(w, text)
		}))
		for name, from := range sources(server.URL) {
			if _, err := from.tenants(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
		}
		server.Close()
	}
}

func TestAListOfManyPagesIsReadWhole(t *testing.T) {
	t.Parallel()
	const last = 40
	got, err := pages(&source{name: "Svix"}, "/x", func(start string) ([]string, string, error) {
		n := len(start)
		switch {
		case n == last:
			return []string{start}, "", nil
		case n%5 != 0: // a page that a filter emptied
			return nil, start + "x", nil
		}
		return []string{start}, start + "x", nil
	})
	if err != nil || len(got) != last/5+1 {
		t.Errorf("%d rows, %v", len(got), err)
	}
	broken := func(string) ([]int, string, error) { return nil, "", context.Canceled }
	if _, err := pages(&source{}, "/x", broken); err == nil {
		t.Error("an error is lost")
	}
}
