package api

import (
	"fmt"
	"unicode/utf8"

	"github.com/oapi-codegen/nullable"

	"posthorn/domain/account"
	"posthorn/domain/characters"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/reason"
	"posthorn/handlers"
)

// orNull is a field that may be null.
func orNull[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return nullable.NewNullNullable[T]()
	}
	return nullable.NewNullableWithValue(*v)
}

// orEmpty is a list that is never null.
func orEmpty[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// cursorOrNull is next_cursor: null at the list's end.
func cursorOrNull(next string) nullable.Nullable[string] {
	if next == "" {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(next)
}

// cut takes the row that was read beyond the page away, and makes the cursor behind the page's last one; empty at the
// list's end.
func cut[T any](rows []T, p handlers.Page, position func(T) []byte) (page []T, next string) {
	if len(rows) <= p.Limit {
		return rows, ""
	}
	page = rows[:p.Limit]
	return page, p.Next(position(page[len(page)-1]))
}

// looked is cut for a list whose query looks at scan rows, at most, and returns those that match, one more than the page
// holds, and the last one that it looked at. The page ends behind its last row, or, where the look ended first, there.
func looked[T any](rows []T, p handlers.Page, scan int32, of func(T) (u id.UUID, place int64, matches bool)) (page []T, next string) {
	page = make([]T, 0, min(len(rows), p.Limit))
	for _, r := range rows {
		u, place, matches := of(r)
		switch {
		case matches && len(page) == p.Limit:
			last, _, _ := of(page[len(page)-1])
			return page, p.NextID(last)
		case matches:
			page = append(page, r)
		}
		if place == int64(scan) {
			return page, p.NextID(u)
		}
	}
	return page, ""
}

// views turns rows into what is shown of them; never null.
func views[T, V any](rows []T, view func(T) V) []V {
	out := make([]V, len(rows))
	for i, r := range rows {
		out[i] = view(r)
	}
	return out
}

// wrongFields gathers what is wrong with a request, so that one answer names it all.
type wrongFields []fault.Field

func (w *wrongFields) add(field, code, detail string) {
	*w = append(*w, fault.Field{Name: field, Code: code, Detail: detail})
}

// text checks a text of least to most characters in one or more lines without control characters; nil is empty.
func (w *wrongFields) text(field string, given *string, least, most int) string {
	if given == nil {
		if least > 0 {
			w.add(field, "field_missing", "Give the field "+field+".")
		}
		return ""
	}
	n := utf8.RuneCountInString(*given)
	switch {
	case n < least || n > most:
		w.add(field, "text_length", fmt.Sprintf("The field %s has %d to %d characters; this one has %d.", field, least, most, n))
	case !characters.Lines(*given):
		w.add(field, "text_characters", "The field "+field+" must not hold control characters or invisible ones.")
	}
	return *given
}

// reason checks why something is done; nil is empty.
func (w *wrongFields) reason(given *string, least int) string {
	text := ""
	if given != nil {
		text = *given
	}
	*w = append(*w, reason.Faults(text, least)...)
	return text
}

// readReason reads the body of a call that may say why, and nothing else; empty where it does not.
func readReason(c *handlers.Call) (string, error) {
	var in ReasonInput
	if err := c.DecodeOptional(&in); err != nil {
		return "", err
	}
	var wrong wrongFields
	reason := wrong.reason(in.Reason, 0)
	return reason, wrong.err()
}

// name checks a name by the rule of the pages (account.Name) and returns it without the spaces around it.
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

// tooMany refuses what would go over a number that the platform allows.
func tooMany(code, what string, most int) error {
	return fault.New(fault.Conflict, code, fmt.Sprintf("There may be %d %s in a tenant. Remove one that is not needed, or ask the people who run this server for more.", most, what))
}
