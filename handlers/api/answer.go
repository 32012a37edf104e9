package api

import (
	"context"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/domain/account"
	"posthorn/domain/characters"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/words"
	"posthorn/handlers"
)

// orEmpty is a list that is never null.
func orEmpty[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// cursorOrNull is next_cursor: null at the end of the list.
func cursorOrNull(next string) nullable.Nullable[string] {
	if next == "" {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(next)
}

// cut removes the extra row that was read after the page, and makes the cursor after the page's last row. The cursor
// is empty at the end of the list.
func cut[T any](rows []T, p handlers.Page, position func(T) []byte) (page []T, next string) {
	found := show.Cut(rows, p.Limit, position)
	return found.Rows, p.Cursor(found.Next)
}

// page is a page of a list in a response.
type page[V any] struct {
	Data       []V                       `json:"data"`
	NextCursor nullable.Nullable[string] `json:"next_cursor"`
}

// respond responds with what a transaction of the caller's tenant returns.
func respond[T, V any](c *handlers.Call, status int, fn func(*db.Tx) (T, error), encode func(T) V) error {
	var found T
	err := c.Tx(func(q *db.Tx) (err error) {
		found, err = fn(q)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(status, encode(found))
}

// get responds with the object of the caller's tenant that a path names.
func get[T, V any](
	c *handlers.Call,
	param string,
	read func(ctx context.Context, q *db.Tx, tenant, object id.UUID) (T, error),
	encode func(T) V,
) error {
	object := c.PathID(param)
	return respond(c, http.StatusOK, func(q *db.Tx) (T, error) {
		return read(c.Ctx(), q, c.Actor.Tenant, object)
	}, encode)
}

// end does something to the object that a path names, and responds without a body.
func end(c *handlers.Call, param string, do func(q *db.Tx, object id.UUID) error) error {
	if err := c.NoBody(); err != nil {
		return err
	}
	if err := c.Tx(func(q *db.Tx) error { return do(q, c.PathID(param)) }); err != nil {
		return err
	}
	return c.AnswerNothing()
}

// ranged reads a list of the caller's tenant that has no filters.
func ranged[T any](
	c *handlers.Call,
	read func(ctx context.Context, q *db.Tx, tenant id.UUID, r show.Range) (show.Page[T], error),
) func(*db.Tx, handlers.Page) (show.Page[T], error) {
	return func(q *db.Tx, p handlers.Page) (show.Page[T], error) {
		return read(c.Ctx(), q, c.Actor.Tenant, p.Range)
	}
}

// list responds with a page of a list of the caller's tenant.
func list[T, V any](c *handlers.Call, l handlers.List, read func(*db.Tx, handlers.Page) (show.Page[T], error), encode func(T) V) error {
	p, err := c.Page(l)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Page[T], error) {
		return read(q, p)
	}, func(found show.Page[T]) page[V] {
		return page[V]{
			Data:       views(found.Rows, encode),
			NextCursor: cursorOrNull(p.Cursor(found.Next)),
		}
	})
}

// views maps rows to their views. It is never null.
func views[T, V any](rows []T, view func(T) V) []V {
	out := make([]V, len(rows))
	for i, r := range rows {
		out[i] = view(r)
	}
	return out
}

// wrongFields collects what is wrong with a request, so that one response names all of it.
type wrongFields []fault.Field

func (w *wrongFields) add(field, code, detail string) {
	*w = append(*w, fault.Field{Name: field, Code: code, Detail: detail})
}

// id rejects an invalid id of a kind.
func (w *wrongFields) id(field string, kind id.Kind, noun string) {
	w.add(field, handlers.MalformedID, "This is not the id of "+noun+": "+kind.Rule()+".")
}

// text checks a text: least to most characters, in one or more lines, without control characters. nil is empty.
func (w *wrongFields) text(field string, given *string, least, most int) string {
	if given == nil {
		if least > 0 {
			w.add(field, "field_missing", "Add the field "+field+".")
		}
		return ""
	}
	n := utf8.RuneCountInString(*given)
	switch {
	case n < least || n > most:
		w.add(field, "text_length", fmt.Sprintf("The field %s must have %d to %d characters; this one has %d.", field, least, most, n))
	case !characters.Lines(*given):
		w.add(field, "text_characters", "The field "+field+" must not contain control characters or invisible characters.")
	}
	return *given
}

// reason checks the reason for an action; nil is empty.
func (w *wrongFields) reason(given *string, least int) string {
	text := ""
	if given != nil {
		text = *given
	}
	*w = append(*w, words.ReasonFaults(text, least)...)
	return text
}

// readReason reads a body that can contain a reason and nothing else. It is empty without a body.
func readReason(c *handlers.Call) (string, error) {
	var in ReasonInput
	if err := c.DecodeOptional(&in); err != nil {
		return "", err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	return reason, wrong.err()
}

// name checks a name by the rule of the pages (account.Name) and returns it trimmed.
func (w *wrongFields) name(field string, given *string) string {
	n := len(*w)
	text := w.text(field, given, 1, account.MaxName)
	if len(*w) > n {
		return text
	}
	text, err := account.Name(field, text)
	if e := fault.As(err); e != nil {
		w.add(field, "text_characters", e.Detail)
	}
	return text
}

func (w *wrongFields) err() error {
	if len(*w) == 0 {
		return nil
	}
	return fault.InvalidFields(*w)
}
