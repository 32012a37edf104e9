package handlers

import (
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
)

// rowID is the id of the n-th delivery of a test.
func rowID(n byte) id.UUID { return id.UUID{0, n} }

var pageOfTest = List{
	Name:     "rows",
	Rows:     3,
	Of:       id.Delivery,
	Back:     true,
	Statuses: []string{"failed", "held"},
	Own:      []string{"top"},
	Filters:  []Filter{BySince, ByType, ByTenant, BySearch},
	Choices:  []Choice{{"state", []string{"", "done"}}},
}

func pageAt(t *testing.T, l List, query string) (Page, error) {
	t.Helper()
	c := &Call{Context: &gin.Context{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/rows?"+query, nil)}, kit: &Kit{}}
	return c.Page(l)
}

func TestPagesAndTheAPIRefuseWithTheSameSentence(t *testing.T) {
	t.Parallel()
	api := pageOfTest
	api.Rows, api.Of, api.Back, api.Own = 0, "", false, nil
	both := map[string]string{
		"status=lost":                   "status: status must be failed or held.",
		"since=yesterday":               "since: since must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z.",
		"type=a%20b":                    "type: type is an event type, such as order.completed, or all types below a prefix, such as order.*.",
		"tenant=zzz":                    "tenant: This is not the id of a tenant: ten_ and 26 lowercase letters and digits.",
		"state=zzz":                     "state: state must be done.",
		"type=a&type=b":                 "type: The parameter type appears 2 times. Send it once.",
		"q=" + strings.Repeat("x", 300): "q: q can have at most 256 bytes.",
	}
	page := maps.Clone(both)
	maps.Copy(page, map[string]string{
		"since=yesterday":               "since: Enter a date and a time of the years 1970 to 9999, such as 2026-01-31 12:00.",
		"q=" + strings.Repeat("x", 300): "q: This text is too long. Enter at most 256 characters.",

		"after=rubbish":  "after: This is not the position of a row in this list. Leave after out to get the first page.",
		"before=rubbish": "before: This is not the position of a row in this list. Leave before out to get the first page.",
		"before=" + id.Delivery.Format(rowID(1)) + "&after=" + id.Delivery.Format(rowID(1)): "before: Send either after or before.",
		"nonsense=1": `nonsense: Unknown parameter "nonsense". This list accepts after, before, state, status, since, type, tenant, q, top.`,
		"cursor=x":   `cursor: Unknown parameter "cursor". This list accepts after, before, state, status, since, type, tenant, q, top.`,
	})
	maps.Copy(both, map[string]string{
		"limit=0":  "limit: limit must be a number from 1 to 250.",
		"order=up": "order: order must be asc or desc.",
		"after=x":  `after: Unknown parameter "after". This list accepts limit, cursor, order, state, status, since, type, tenant, q.`,
	})
	for _, surface := range []struct {
		list  List
		cases map[string]string
	}{{api, both}, {pageOfTest, page}} {
		for query, want := range surface.cases {
			_, err := pageAt(t, surface.list, query)
			wrong, other := FormErrors(err)
			if name, detail, _ := strings.Cut(want, ": "); other != nil || len(wrong) != 1 || wrong[name] != inForm(fault.Field{Name: name, Detail: detail}) {
				t.Errorf("%d rows, %s: %v %v, want %s", surface.list.Rows, query, wrong, other, want)
			}
		}
	}
}

func TestAPageLeavesOutEmptyFieldsAndReadsTimesAsUTC(t *testing.T) {
	t.Parallel()
	p, err := pageAt(t, pageOfTest, "since=2026-01-31T12:00&type=+order.paid+&tenant=&state=&status=&q=&top=7&after="+id.Delivery.Format(rowID(5)))
	if err != nil || !p.Since.Equal(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)) || p.Type != "order.paid" || p.Limit != 3 || p.AfterID() != rowID(5) || p.Ascending {
		t.Errorf("%+v %v", p, err)
	}
	if want := "/rows?since=2026-01-31T12%3A00%3A00Z&type=order.paid"; p.Address() != want || p.Given.Get("top") != "7" {
		t.Errorf("the list is at %s with %v, want %s", p.Address(), p.Given, want)
	}
	p, err = pageAt(t, pageOfTest, "status=lost&since=soon")
	if err == nil || p.Given.Get("status") != "lost" || p.Given.Get("since") != "soon" {
		t.Errorf("a form that is refused forgets %v", p.Given)
	}
}

// TestPagesLeadToEachOther follows the links of a list of seven rows, newest first, to its end and back.
func TestPagesLeadToEachOther(t *testing.T) {
	t.Parallel()
	read := func(r show.Range) (show.Page[id.UUID], error) {
		var rows []id.UUID
		for n := range byte(7) {
			if one := rowID(n + 1); r.After == nil || r.Ascending == (one.Compare(r.AfterID()) > 0) && one != r.AfterID() {
				rows = append(rows, one)
			}
		}
		if !r.Ascending {
			slices.Reverse(rows)
		}
		return show.CutByID(rows, r.Limit, func(u id.UUID) id.UUID { return u }), nil
	}
	position := func(u id.UUID) []byte { return u[:] }
	follow := func(address string) (numbers []int, v Listed[id.UUID]) {
		p, err := pageAt(t, pageOfTest, strings.TrimPrefix(strings.TrimPrefix(address, "/rows"), "?"))
		if err == nil {
			v, err = ReadPage(p, position, read)
		}
		if err != nil {
			t.Fatal(address, err)
		}
		for _, u := range v.Rows {
			numbers = append(numbers, int(u[1]))
		}
		return numbers, v
	}
	first, v := follow("/rows")
	second, next := follow(v.Older)
	third, last := follow(next.Older)
	if !slices.Equal(slices.Concat(first, second, third), []int{7, 6, 5, 4, 3, 2, 1}) || v.Newer != "" || last.Older != "" || last.Short {
		t.Errorf("down: %v %v %v, then %+v", first, second, third, last)
	}
	back, v := follow(last.Newer)
	if !slices.Equal(back, second) || v.Older == "" {
		t.Errorf("back: %v, want %v", back, second)
	}
	if start, v := follow(v.Newer); !slices.Equal(start, first) || v.Newer != "" || v.Older != next.Newer && v.Older == "" {
		t.Errorf("the start: %v, want %v: %+v", start, first, v)
	}
	if start, _ := follow("/rows?before=" + id.Delivery.Format(rowID(6))); !slices.Equal(start, first) {
		t.Errorf("less than a page before a row: %v, want the whole start %v", start, first)
	}
	oneWay := pageOfTest
	oneWay.Back = false
	p, err := pageAt(t, oneWay, "after="+id.Delivery.Format(rowID(5)))
	if err != nil {
		t.Fatal(err)
	}
	if v, err := ReadPage(p, position, read); err != nil || v.Newer != "/rows" {
		t.Errorf("a list that is read one way leads back to its start, not to %q (%v)", v.Newer, err)
	}
}

func TestAWordOfAnotherSystemIsAnsweredWithOurs(t *testing.T) {
	t.Parallel()
	deliveries := List{Name: "deliveries", Statuses: []string{"delivered", "retrying", "failed"}}
	for word, hint := range map[string]string{
		"success":            "For success use delivered.",
		"pending_retry":      "For pending_retry use retrying.",
		"permanently_failed": "For permanently_failed use failed.",
		"retried":            "For retried use failed.",
		"all":                "Leave status out to list all deliveries.",
		"lost":               "Status must be one of delivered, retrying, failed.",
	} {
		_, err := pageAt(t, deliveries, "status="+word)
		if wrong := WrongFields(err)["status"]; !strings.HasSuffix(wrong, hint) {
			t.Errorf("%s: %q", word, wrong)
		}
	}
	if _, err := pageAt(t, pageOfTest, "status=success"); strings.Contains(WrongFields(err)["status"], "delivered") {
		t.Errorf("a list without this status recommends it: %v", err)
	}
}
