package svix

import (
	"net/http"
	"net/url"
	"strconv"

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

// listQuery translates the parameters that all lists have.
func listQuery(c *handlers.Call) url.Values {
	in, out := c.Request.URL.Query(), url.Values{}
	if n, err := strconv.Atoi(in.Get("limit")); err == nil {
		out.Set("limit", strconv.Itoa(min(max(n, 1), handlers.MaxLimit)))
	}
	if it := in.Get("iterator"); it != "" {
		out.Set("cursor", it)
	}
	switch in.Get("order") {
	case "ascending":
		out.Set("order", "asc")
	case "descending":
		out.Set("order", "desc")
	}
	for from, to := range map[string]string{"after": "since", "before": "until", "channel": "channel"} {
		if v := in.Get(from); v != "" {
			out.Set(to, v)
		}
	}
	return out
}

// list reads a page of Posthorn's own API and responds with it in Svix's form.
func list[From, To any](s *svix, c *handlers.Call, path string, query url.Values, view func(From) (To, error)) error {
	var rows own[From]
	if _, err := s.call(c, http.MethodGet, path+"?"+query.Encode(), nil, &rows); err != nil {
		return err
	}
	out := page[To]{Data: []To{}, Iterator: rows.NextCursor, Done: rows.NextCursor == nil}
	for _, row := range rows.Data {
		v, err := view(row)
		if err != nil {
			return err
		}
		out.Data = append(out.Data, v)
	}
	return c.Answer(http.StatusOK, out)
}
