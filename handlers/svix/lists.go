package svix

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"posthorn/handlers"
)

// page is a list in Svix's form.
type page[T any] struct {
	Data         []T     `json:"data"`
	Iterator     *string `json:"iterator"`
	PrevIterator *string `json:"prevIterator"`
	Done         bool    `json:"done"`
}

// own is a page of Posthorn's own API.
type own[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
}

// listQuery translates the parameters that lists share.
func listQuery(c *handlers.Call) (url.Values, error) {
	in, out := c.Request.URL.Query(), url.Values{}
	if text := in.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, refuseQuery("limit", "The limit is a number, such as 50.")
		}
		out.Set("limit", strconv.Itoa(min(max(n, 1), handlers.MaxLimit)))
	}
	if it := in.Get("iterator"); it != "" {
		out.Set("cursor", it)
	}
	switch in.Get("order") {
	case "":
	case "ascending":
		out.Set("order", "asc")
	case "descending":
		out.Set("order", "desc")
	default:
		return nil, refuseQuery("order", "The order is ascending or descending.")
	}
	for from, to := range map[string]string{"after": "since", "before": "until", "channel": "channel"} {
		if v := in.Get(from); v != "" {
			out.Set(to, v)
		}
	}
	return out, nil
}

// typesAsked are the event types that a list was asked for, repeated or joined by commas; nil: all.
func typesAsked(c *handlers.Call) (types []string) {
	for _, given := range c.QueryArray("event_types") {
		types = append(types, strings.Split(given, ",")...)
	}
	return types
}

// byType adds the event types to the query of Posthorn's own API, which takes one. The function says of a type whether
// it was asked for.
func byType(c *handlers.Call, query url.Values) func(string) bool {
	types := typesAsked(c)
	if len(types) == 1 {
		query.Set("type", types[0])
	}
	return func(t string) bool { return len(types) < 2 || slices.Contains(types, t) }
}

// mostPages is how many pages of Posthorn's own API a page is gathered from. With a filter that matches rarely it then
// has fewer objects, and an iterator.
const mostPages = 20

// gather reads pages of Posthorn's own API until a page in Svix's form is full. view makes of a row what the list has
// of it, or nothing.
func gather[From, To any](s *svix, c *handlers.Call, path string, query url.Values, view func(From) ([]To, error)) (page[To], error) {
	most := handlers.DefaultLimit
	if n, err := strconv.Atoi(query.Get("limit")); err == nil {
		most = n
	}
	out := page[To]{Data: []To{}}
	for range mostPages {
		query.Set("limit", strconv.Itoa(max(most-len(out.Data), 1)))
		var rows own[From]
		if _, err := s.call(c, http.MethodGet, path+"?"+query.Encode(), nil, &rows); err != nil {
			return out, err
		}
		for _, row := range rows.Data {
			v, err := view(row)
			if err != nil {
				return out, err
			}
			out.Data = append(out.Data, v...)
		}
		out.Iterator, out.Done = rows.NextCursor, rows.NextCursor == nil
		if out.Done || len(out.Data) >= most {
			break
		}
		query.Set("cursor", *rows.NextCursor)
	}
	return out, nil
}

// list responds with a list whose rows are each one object, or left out.
func list[From, To any](s *svix, c *handlers.Call, path string, query url.Values, view func(From) (To, bool, error)) error {
	out, err := gather(s, c, path, query, func(row From) ([]To, error) {
		v, listed, err := view(row)
		if err != nil || !listed {
			return nil, err
		}
		return []To{v}, nil
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, out)
}

// each is the view of a list that leaves nothing out.
func each[From, To any](view func(From) To) func(From) (To, bool, error) {
	return func(row From) (To, bool, error) { return view(row), true, nil }
}
