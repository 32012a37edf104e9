package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
)

var day = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// numbered is the id of the nth row of a kind.
func numbered(n int, kind byte) id.UUID {
	u := id.FirstAt(day.Add(time.Duration(n) * time.Second))
	u[15] = kind
	return u
}

// partOf has n events, each with a delivery, its attempt, and of every third its dead letter.
func partOf(n int) (r Rows) {
	for i := range n {
		event, delivery := numbered(i, 1), numbered(i, 2)
		r.Events = append(r.Events, fmt.Sprintf(`{"created_at":"x","id":"%s","type":"order.%d","channels":["a\",\"id\":\"b"],"content_type":"order.9"}`, event, i%2))
		r.Deliveries = append(r.Deliveries, fmt.Sprintf(`{"created_at":"x","id":"%s","event_id":"%s","endpoint_id":"%s","event_type":"order.%d","archived_at":null}`, delivery, event, numbered(i%5, 4), i%2))
		r.Attempts = append(r.Attempts, fmt.Sprintf(`{"id":"%s","delivery_id":"%s","error":"\"delivery_id\":\"none\""}`, numbered(i, 3), delivery))
		if i%3 == 0 {
			r.DeadLetters = append(r.DeadLetters, fmt.Sprintf(`{"delivery_id":"%s"}`, delivery))
		}
	}
	return r
}

// What a page doesn't show is not read into the database: of a part of ten thousand deliveries, as many as fit on it.
func TestAListTakesWhatItsPageShowsOfAPart(t *testing.T) {
	t.Parallel()
	all := partOf(10_000)
	for _, c := range []struct {
		w          Wanted
		n, letters int
		first      int // event
		last       time.Time
	}{
		{w: Wanted{High: id.Last, Rows: 51}, n: 51, letters: 17, first: 9949, last: day.Add(9949 * time.Second)},
		{w: Wanted{High: id.Last, Rows: 51, Ascending: true}, n: 51, letters: 17, first: 0, last: day.Add(50 * time.Second)},
		{w: Wanted{High: id.Last, Rows: 51, Events: true}, n: 51, letters: 17, first: 9949, last: day.Add(9949 * time.Second)},
		{w: Wanted{High: id.Last, Rows: 9, Type: "order.1"}, n: 9, letters: 3, first: 9983, last: day.Add(9983 * time.Second)},
		{w: Wanted{High: id.Last, Rows: 9, Endpoint: numbered(4, 4), Ascending: true}, n: 9, letters: 3, first: 4, last: day.Add(44 * time.Second)},
		{w: Wanted{High: id.Last, Rows: 9, Archived: true}},
		{w: Wanted{High: id.Last, Rows: 9, Type: "order.9", Events: true}},
		{w: Wanted{Low: numbered(9_990, 9), High: id.Last, Rows: 51}, n: 9, letters: 3, first: 9991},
	} {
		got, last, err := all.OfList(c.w)
		if err != nil || len(got.Events) != c.n || len(got.Deliveries) != c.n || len(got.DeadLetters) != c.letters || len(got.Attempts) != 0 || !last.Equal(c.last) {
			t.Errorf("%+v: %d events, %d deliveries, %d letters, %d attempts, last %v, %v", c.w, len(got.Events), len(got.Deliveries), len(got.DeadLetters), len(got.Attempts), last, err)
		}
		if c.n > 0 && !strings.Contains(got.Events[0], numbered(c.first, 1).String()) {
			t.Errorf("%+v begins with %s", c.w, got.Events[0])
		}
	}
}

// Rows of one moment are on one page: a list goes on at the next.
func TestAListDoesNotPartAMoment(t *testing.T) {
	t.Parallel()
	var all Rows
	for i := range 30 {
		u := id.FirstAt(day.Add(time.Duration(i/10) * time.Millisecond))
		u[14], u[15] = byte(i), 2
		all.Deliveries = append(all.Deliveries, fmt.Sprintf(`{"id":"%s","event_id":null,"archived_at":null}`, u))
	}
	for _, ascending := range []bool{true, false} {
		got, last, err := all.OfList(Wanted{High: id.Last, Rows: 11, Ascending: ascending})
		if err != nil || len(got.Deliveries) != 20 || !last.Equal(day.Add(time.Millisecond)) {
			t.Errorf("ascending %t: %d, %v, %v", ascending, len(got.Deliveries), last, err)
		}
	}
}

func TestRowsOfOneDeliveryAreFoundByTheirColumns(t *testing.T) {
	t.Parallel()
	all := partOf(20)
	got, event, err := all.OfDelivery(numbered(9, 2))
	if err != nil || event != numbered(9, 1) || len(got.Events) != 1 || len(got.Deliveries) != 3 || len(got.Attempts) != 3 || len(got.DeadLetters) != 1 {
		t.Errorf("%v %v: %+v", event, err, got)
	}
	if got, err := all.OfEvent(numbered(3, 1)); err != nil || len(got.Events)+len(got.Deliveries)+len(got.Attempts)+len(got.DeadLetters) != 4 {
		t.Errorf("%v: %+v", err, got)
	}
	if _, event, err := all.OfDelivery(numbered(21, 2)); err != nil || !event.IsZero() {
		t.Errorf("an unknown delivery: %v %v", event, err)
	}
	all.Deliveries[3] = `{"id":"0199"}`
	if _, _, err := all.OfDelivery(numbered(9, 2)); err == nil {
		t.Error("a short id is read")
	}
}
