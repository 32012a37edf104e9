package handlers

import (
	"net/http"

	"posthorn/db"
	"posthorn/domain/access"
	"posthorn/domain/notice"
	"posthorn/domain/show"
)

// NoticeKinds is the choice of the kinds of notices that a role sees.
func NoticeKinds(role access.Role) Choice {
	return Choice{Name: "kind", Words: append([]string{"any"}, notice.NamesFor(role)...)}
}

// Words are the words that a choice leaves: the one that was chosen or, where that is the first, all others.
func (p Page) Words(c Choice) []string {
	if chosen := p.Chosen[c.Name]; chosen != c.Words[0] {
		return []string{chosen}
	}
	return c.Words[1:]
}

// Listing is a list as a page of HTML shows it, or what is wrong with its filters.
type Listing[T any] struct {
	Page
	Listed[T]
	Wrong map[string]string
}

// ReadList reads a list for a page of HTML, in one transaction. The list has no way back. An error of a list without
// filters is returned, because there is no form to show it in.
func ReadList[T any](
	c *Call,
	l List,
	tx func(func(*db.Tx) error) error,
	read func(*db.Tx, Page) (show.Page[T], error),
) (v Listing[T], err error) {
	v.Page, err = c.Page(l)
	if len(l.Filters)+len(l.Choices) > 0 {
		v.Wrong, err = FormErrors(err)
	}
	if err != nil || len(v.Wrong) > 0 {
		return v, err
	}
	err = tx(func(q *db.Tx) error {
		v.Listed, err = ReadPage(v.Page, nil, func(r show.Range) (show.Page[T], error) {
			v.Page.Range = r
			return read(q, v.Page)
		})
		return err
	})
	return v, err
}

// Status is the HTTP status of the page: 400 if a filter is invalid.
func (v Listing[T]) Status() int {
	if len(v.Wrong) > 0 {
		return http.StatusBadRequest
	}
	return http.StatusOK
}
