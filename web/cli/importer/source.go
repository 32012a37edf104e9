package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// source speaks to the server of another sender. A request that the server is too busy for is made again.
type source struct {
	name        string // of the sender, for messages
	base, token string
	http        *http.Client
}

// newSource is a source at an address, for as many requests at once as an import makes.
func newSource(name, address, token string) *source {
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxIdleConnsPerHost = workers
	return &source{
		name:  name,
		base:  strings.TrimRight(address, "/"),
		token: token,
		http: &http.Client{
			Timeout:   30 * time.Second,
			Transport: pool,
			// A redirect would carry the token to wherever the other server says.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// The bounds of a list of the other server: entries in all, and pages in a row without one.
const (
	maxListed     = 250_000
	maxEmptyPages = 10
)

// pages reads every page of a list. read gets where a page starts, empty for the first, and says where the next one
// does, empty at the end. A list that makes no progress, or has no end, is an error.
func pages[T any](s *source, path string, read func(start string) (rows []T, next string, err error)) ([]T, error) {
	var out []T
	seen := map[string]bool{"": true}
	empty := 0
	for start := ""; ; {
		rows, next, err := read(start)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		if len(rows) > 0 {
			empty = 0
		} else {
			empty++
		}
		path, _, _ := strings.Cut(path, "?")
		switch {
		case next == "":
			return out, nil
		case seen[next]:
			return nil, failf("The list %s of %s does not end: it names the same page %q twice.", path, s.name, next)
		case empty == maxEmptyPages:
			return nil, failf("The list %s of %s does not end: %d pages in a row are empty.", path, s.name, empty)
		case len(out) > maxListed:
			return nil, failf("The list %s of %s has no end, or more than %d entries, which is the maximum.", path, s.name, maxListed)
		}
		seen[next], start = true, next
	}
}

// How often a request is made before it is given up, and how long the other server can ask to wait in between.
const (
	sourceTries  = 8
	longestPause = time.Minute
)

// refusedThere is a response of the other server that a repetition does not change.
type refusedThere struct {
	status int
	text   string
}

func (e *refusedThere) Error() string { return e.text }

// hasStatus reports whether the other server responded with a status.
func hasStatus(err error, status int) bool {
	var refused *refusedThere
	return errors.As(err, &refused) && refused.status == status
}

func (s *source) get(ctx context.Context, path string, into any) error {
	return s.do(ctx, http.MethodGet, path, nil, into)
}

// do sends a request until it gets a response. body is sent as JSON unless it is nil; a nil into leaves the response
// unread.
func (s *source) do(ctx context.Context, method, path string, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	for try := 1; ; try++ {
		pause, err := s.once(ctx, method, path, text, into)
		if err == nil || pause < 0 || try == sourceTries {
			return err
		}
		select {
		case <-time.After(min(max(pause, time.Duration(1<<try)*25*time.Millisecond), longestPause)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// once makes a request. pause says how long to wait before the next try; less than 0 is never.
func (s *source) once(ctx context.Context, method, path string, body []byte, into any) (pause time.Duration, err error) {
	var send io.Reader
	if body != nil {
		send = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, send)
	if err != nil {
		return -1, err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := s.http.Do(r)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return -1, err
		}
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return 0, err
	}
	where, _, _ := strings.Cut(path, "?")
	refused := &refusedThere{res.StatusCode, fmt.Sprintf("%s responded to %s %s with %d", s.name, method, where, res.StatusCode)}
	switch {
	case res.StatusCode/100 == 2 && into == nil:
		return 0, nil
	case res.StatusCode/100 == 2:
		if err := json.Unmarshal(text, into); err != nil {
			return -1, fmt.Errorf("%s responded to %s %s with something other than its API promises: %w", s.name, method, where, err)
		}
		return 0, nil
	case res.StatusCode/100 == 3:
		refused.text += fmt.Sprintf(", a redirect to %s. Redirects are not followed, because the token would go there too. If that address is right, import from it.",
			WithoutQuery(res.Header.Get("Location")))
		return -1, refused
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= 500 &&
		res.StatusCode != http.StatusNotImplemented:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, refused
	}
	refused.text += fmt.Sprintf(": %.200s", strings.Join(strings.Fields(string(text)), " "))
	return -1, refused
}

// WithoutQuery is an address without the values of its query, which can be secrets.
func WithoutQuery(address string) string {
	before, _, found := strings.Cut(address, "?")
	if found {
		before += "?..."
	}
	return before
}
