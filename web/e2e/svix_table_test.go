//go:build (e2e || soak) && unix

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// svixReceiver receives for programs in every language. They ask it over HTTP: /ctl/status/CODE/PATH sets the response
// of a path; /ctl/wait/PATH?has=TEXT is the first request there with a text, with its body and its svix headers; and
// /ctl/delivered/PATH waits for one that gets a 2xx.
type svixReceiver struct {
	mu     sync.Mutex
	status map[string]int
	got    []svixRequest
	more   chan struct{} // closed at the next request
}

type svixRequest struct {
	path, body string
	header     http.Header
	status     int
}

func newSvixReceiver(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(&svixReceiver{status: map[string]int{}, more: make(chan struct{})})
	t.Cleanup(server.Close)
	return server.URL
}

func (s *svixReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if ask, ok := strings.CutPrefix(r.URL.Path, "/ctl/"); ok {
		verb, rest, _ := strings.Cut(ask, "/")
		s.control(w, r, verb, rest)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	status := max(s.status[r.URL.Path], http.StatusOK)
	s.got = append(s.got, svixRequest{r.URL.Path, string(body), r.Header, status})
	close(s.more)
	s.more = make(chan struct{})
	w.WriteHeader(status)
}

func (s *svixReceiver) control(w http.ResponseWriter, r *http.Request, verb, rest string) {
	switch verb {
	case "status":
		code, path, _ := strings.Cut(rest, "/")
		s.mu.Lock()
		s.status["/"+path], _ = strconv.Atoi(code)
		s.mu.Unlock()
	case "delivered":
		s.await(w, r, func(q svixRequest) bool { return q.path == "/"+rest && q.status < 300 })
	case "wait":
		s.await(w, r, func(q svixRequest) bool {
			return q.path == "/"+rest && strings.Contains(q.body, r.URL.Query().Get("has"))
		})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// await responds with the first request that is meant.
func (s *svixReceiver) await(w http.ResponseWriter, r *http.Request, meant func(svixRequest) bool) {
	late := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		i, more := slices.IndexFunc(s.got, meant), s.more
		var found svixRequest
		if i >= 0 {
			found = s.got[i]
		}
		s.mu.Unlock()
		if i >= 0 {
			for name, values := range found.header {
				if strings.HasPrefix(name, "Svix-") {
					w.Header()[name] = values
				}
			}
			w.Header().Set("Was-Content-Type", found.header.Get("Content-Type"))
			_, _ = io.WriteString(w, found.body)
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		case <-late:
			http.Error(w, "no such request arrived", http.StatusGatewayTimeout)
			return
		}
	}
}

// svixTable notes which library called which operation of docs/svix.md.
type svixTable struct {
	rows    []string // METHOD /path, as the page has them
	match   []*regexp.Regexp
	refused map[string]bool // by row: Posthorn does not have it

	mu    sync.Mutex
	calls map[string]map[string]bool // by row and library: it got the documented response
	wrong []string
	libs  []string // those that ran to the end
}

const svixPage = "../../docs/svix.md"

func newSvixTable(t *testing.T) *svixTable {
	t.Helper()
	page, err := os.ReadFile(svixPage)
	if err != nil {
		t.Fatal(err)
	}
	s := &svixTable{refused: map[string]bool{}, calls: map[string]map[string]bool{}}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| (\\d+:|[A-Z]|204)").FindAllStringSubmatch(string(page), -1) {
		if s.calls[row[1]] != nil {
			continue
		}
		s.rows = append(s.rows, row[1])
		s.refused[row[1]] = row[2] == "400:"
		s.calls[row[1]] = map[string]bool{}
		s.match = append(s.match, regexp.MustCompile("^"+regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(row[1]), "[^/]+")+"$"))
	}
	return s
}

// record is a proxy in front of the server, which notes the calls of one library.
func (s *svixTable) record(t *testing.T, server string, l library) (address string) {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			if l.hostOnly {
				r.Out.Host = svixHost
			}
		},
		ModifyResponse: func(r *http.Response) error {
			path := strings.TrimPrefix(strings.TrimPrefix(r.Request.URL.Path, "/svix"), "/api/v1")
			s.note(r.Request.Method+" "+strings.TrimSuffix(path, "/"), l.name, r.StatusCode)
			return nil
		},
	})
	t.Cleanup(proxy.Close)
	if l.hostOnly {
		return proxy.URL
	}
	return proxy.URL + "/svix"
}

func (s *svixTable) note(call, library string, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, row := range s.rows {
		// Several rows match /msg/expunge-all-contents: the one without a parameter there comes first.
		if !s.match[i].MatchString(call) || strings.Count(row, "{") > fewest(s, call) {
			continue
		}
		if s.refused[row] == (status == http.StatusBadRequest) && status < 500 {
			s.calls[row][library] = s.calls[row][library] || s.refused[row] || status < 300
			return
		}
	}
	// A busy server answers 503, and the library asks again.
	if status >= 500 && status != http.StatusServiceUnavailable || status == http.StatusBadRequest {
		s.wrong = append(s.wrong, fmt.Sprintf("%s %s: %d", library, call, status))
	}
}

// fewest is the fewest parameters of a row that matches a call.
func fewest(s *svixTable, call string) int {
	least := len(call)
	for i, row := range s.rows {
		if s.match[i].MatchString(call) {
			least = min(least, strings.Count(row, "{"))
		}
	}
	return least
}

func (s *svixTable) done(l library) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.libs = append(s.libs, l.name)
}

// The generated part of the page.
const (
	tableFrom = "<!-- generated by TestTheSvixLibrariesDoTheirScenarioUnmodified with POSTHORN_UPDATE=1 -->\n"
	tableTo   = "<!-- end of what is generated -->\n"
)

// compare checks that every operation was called, and that the page has the table of the calls.
func (s *svixTable) compare(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.wrong {
		t.Error(line)
	}
	if slices.Contains(s.libs, "python 2") {
		for _, row := range s.rows {
			if len(s.calls[row]) == 0 {
				t.Errorf("no library calls %s", row)
			}
		}
	}
	page, err := os.ReadFile(svixPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), tableFrom)
	table, after, ends := strings.Cut(rest, tableTo)
	if !ok || !ends {
		t.Fatal("docs/svix.md has no place for the table")
	}
	is := before + tableFrom + s.text(cellsOf(table)) + tableTo + after
	switch {
	case is == string(page):
	case os.Getenv("POSTHORN_UPDATE") == "1":
		if err := os.WriteFile(svixPage, []byte(is), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("the table of libraries in docs/svix.md is not that of this run: run it with POSTHORN_UPDATE=1")
	}
}

// cellsOf reads a table: its words by row and library.
func cellsOf(table string) map[string]map[string]string {
	var libraries []string
	cells := map[string]map[string]string{}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		words := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range words {
			words[i] = strings.Trim(words[i], " `")
		}
		switch {
		case len(words) < 2:
		case libraries == nil:
			libraries = words[1:]
		default:
			cells[words[0]] = map[string]string{}
			for i, word := range words[1:] {
				cells[words[0]][libraries[i]] = word
			}
		}
	}
	return cells
}

// text is the table of the calls. A library that was skipped keeps the words that it has.
func (s *svixTable) text(had map[string]map[string]string) string {
	var b strings.Builder
	b.WriteString("\n`ok` means that the library called the operation and read the response; `400` that it was told what to use instead.\n\n| operation |")
	for _, l := range svixLibraries {
		fmt.Fprintf(&b, " %s |", l.name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(svixLibraries)) + "\n")
	for _, row := range s.rows {
		fmt.Fprintf(&b, "| `%s` |", row)
		for _, l := range svixLibraries {
			word := ""
			switch {
			case !slices.Contains(s.libs, l.name):
				word = had[row][l.name]
			case s.calls[row][l.name] && s.refused[row]:
				word = "400"
			case s.calls[row][l.name]:
				word = "ok"
			}
			fmt.Fprintf(&b, " %s |", word)
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return b.String()
}
