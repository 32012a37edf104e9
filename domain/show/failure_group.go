package show

import (
	"cmp"
	"slices"

	"posthorn/domain/delivery"
	"posthorn/domain/failures"
	"posthorn/domain/id"
)

// FailureGroup is failed deliveries with the same response to their last attempt.
type FailureGroup struct {
	Key        string
	Result     delivery.Result
	Text       string     // of the response; with gaps where the responses differ
	Deliveries []Delivery // newest first
}

// Response is the result in a word or two: "422".
func (g FailureGroup) Response() string {
	return delivery.AnswerText(g.Result.Status, g.Result.Failure)
}

// Replayable are the ids of the deliveries that a replay sends again; the others are still retried.
func (g FailureGroup) Replayable() (ids []id.UUID) {
	for _, d := range g.Deliveries {
		if delivery.CanReplay(d.Status) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// Failures are the newest failures of an endpoint that were neither delivered nor replayed, by their response.
type Failures struct {
	Groups []FailureGroup // the largest first
	Total  int
	More   bool // there are older failures
}

// Group finds a group by its key; nil: none of the failures is in it any more.
func (f Failures) Group(key string) *FailureGroup {
	for i := range f.Groups {
		if f.Groups[i].Key == key {
			return &f.Groups[i]
		}
	}
	return nil
}

// NewFailures groups failed deliveries, newest first, by the bodies of their last responses.
func NewFailures(failed []Delivery, bodies map[id.UUID][]byte, more bool) Failures {
	f := Failures{Total: len(failed), More: more}
	at := map[string]int{}
	for _, d := range failed {
		text := failures.Text(bodies[d.ID])
		key := failures.Key(d.Last, text)
		i, known := at[key]
		if !known {
			i = len(f.Groups)
			at[key] = i
			f.Groups = append(f.Groups, FailureGroup{Key: key, Result: d.Last, Text: text})
		}
		g := &f.Groups[i]
		if g.Text != text {
			g.Text = failures.Normal(g.Text)
		}
		g.Deliveries = append(g.Deliveries, d)
	}
	slices.SortStableFunc(f.Groups, func(a, b FailureGroup) int {
		return cmp.Compare(len(b.Deliveries), len(a.Deliveries))
	})
	return f
}
