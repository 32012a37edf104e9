package pages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"posthorn/domain/bulk"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// BulkConfirmView asks before something is done to many.
type BulkConfirmView struct {
	Shell   layout.Shell
	Root    string
	Back    string // the list that it came from
	Kind    bulk.Kind
	Count   int64
	Exact   bool  // false: at least so many
	Repeats int64 // of a replay: how many of them were replayed before
	Skipped []SkipCount
	Filter  []Fact              // what was selected, in words
	Fields  map[string][]string // what the form sends on
	Reason  components.FieldProps
	Pace    components.FieldProps
	Wrong   map[string]string
}

// Fact is a property and its value.
type Fact struct{ Label, Value string }

// SkipCount is how many a job leaves alone for a reason.
type SkipCount struct {
	Why   bulk.Skip
	Count int64
}

// Skips are the reasons with their counts, the most frequent first.
func Skips(counts map[bulk.Skip]int64) []SkipCount {
	var out []SkipCount
	for why, n := range counts {
		if n > 0 {
			out = append(out, SkipCount{why, n})
		}
	}
	slices.SortFunc(out, func(a, b SkipCount) int {
		if a.Count != b.Count {
			return int(b.Count - a.Count)
		}
		return strings.Compare(string(a.Why), string(b.Why))
	})
	return out
}

var skipWords = map[bulk.Skip]string{
	bulk.SkipWaiting: "still under way: they must end first", bulk.SkipSettled: "ended already", bulk.SkipHeld: "held: their endpoint receives nothing now",
	bulk.SkipBlocked: "waiting behind an older one of their key", bulk.SkipReady: "about to be sent anyway", bulk.SkipReplayed: "replayed before",
	bulk.SkipEndpointDeleted: "to an endpoint that was deleted", bulk.SkipEventExpired: "of an event past the retention",
	bulk.SkipExpunged: "of an event whose data was destroyed", bulk.SkipAlready: "so already",
}

func (s SkipCount) text() string {
	words := skipWords[s.Why]
	if words == "" {
		words = string(s.Why)
	}
	return components.Count(s.Count) + " " + words
}

var bulkVerbs = map[bulk.Kind]struct{ verb, past, noun string }{
	bulk.Replay: {"replay", "replayed", "deliveries"}, bulk.ReplayMissing: {"send", "sent", "missing events"}, bulk.RetryNow: {"retry", "retried", "deliveries"},
	bulk.Cancel: {"cancel", "canceled", "deliveries"}, bulk.Archive: {"archive", "archived", "deliveries"}, bulk.Unarchive: {"unarchive", "shown again", "deliveries"},
	bulk.Drop: {"drop", "dropped", "held deliveries"}, bulk.Expunge: {"expunge", "expunged", "events"},
}

// what says what is done to how many: "Replay 1,200 deliveries".
func what(k bulk.Kind, n int64, exact bool) string {
	w := bulkVerbs[k]
	noun := w.noun
	if n == 1 {
		noun = strings.TrimSuffix(strings.Replace(noun, "deliveries", "delivery", 1), "s")
	}
	count := components.Count(n)
	if !exact {
		count = "at least " + count
	}
	return sentence(w.verb) + " " + count + " " + noun
}

func (v BulkConfirmView) title() string {
	if v.Count == 0 {
		return "Nothing to " + bulkVerbs[v.Kind].verb
	}
	return what(v.Kind, v.Count, v.Exact) + "?"
}

// repeats says how many of those to be replayed were replayed before.
func (v BulkConfirmView) repeats() string {
	n := components.Many(v.Repeats, "of these deliveries was", "of these deliveries were")
	if v.Repeats == 1 {
		return n + " replayed before, and is sent once more."
	}
	return n + " replayed before, and are sent once more."
}

func (v BulkConfirmView) text() string {
	if v.Count == 0 {
		return "None of these deliveries can be " + bulkVerbs[v.Kind].past + ". Nothing is changed."
	}
	switch v.Kind {
	case bulk.Replay:
		return "Each is sent again as a new delivery: the same event, the same body, at the end of its endpoint's queue, at the endpoint's own rate."
	case bulk.RetryNow:
		return "Each is tried as soon as its endpoint has room, instead of at its time."
	case bulk.Cancel:
		return "None of them is tried again. Requests that are under way are not stopped. Canceled deliveries can be replayed."
	case bulk.Archive:
		return "Lists leave them out. Nothing is deleted, and unarchive shows them again."
	}
	return "Lists show them again."
}

func (v BulkConfirmView) submit() components.ButtonProps {
	p := components.ButtonProps{Label: what(v.Kind, v.Count, v.Exact), Kind: components.Primary}
	if v.Kind == bulk.Cancel {
		p.Kind = components.Danger
	}
	return p
}

func hiddenLists(fields map[string][]string) [][2]string {
	var out [][2]string
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range fields[name] {
			out = append(out, [2]string{name, value})
		}
	}
	return out
}

// BulkJobView is the page of one job.
type BulkJobView struct {
	Shell layout.Shell
	Root  string
	Stale string
	Job   BulkJob
	Acts  bool

	Outcome *bulk.Outcome // what became of the deliveries that it made; nil: it makes none, or nothing is known
}

// Live reports whether the page still changes: the job runs, or what it made is on its way.
func (v BulkJobView) Live() bool {
	return !v.Job.State.Over() || v.Outcome != nil && v.Outcome.Waiting > 0
}

// poll is how often the page is refreshed.
func (v BulkJobView) poll() string {
	if v.Job.State.Over() {
		return "every 5s"
	}
	return "every 1s"
}

// made is where the deliveries are that the job made, of one status or all.
func (v BulkJobView) made(status string) string {
	to := v.Root + "/deliveries?job=" + v.Job.ID
	if status != "" {
		to += "&status=" + status
	}
	return to
}

// BulkJob is one job as people see it.
type BulkJob struct {
	ID                      string
	Kind                    bulk.Kind
	State                   bulk.State
	Expected, Done          int64
	Exact                   bool
	Skipped                 []SkipCount
	Pace                    int
	Reason, Failure         string
	AskedKind, AskedBy      string
	Filter                  []Fact
	Created, Started, Ended time.Time
}

func (j BulkJob) name() string {
	w := bulkVerbs[j.Kind]
	return sentence(w.verb) + " " + w.noun
}

func (j BulkJob) tone() components.Tone {
	switch j.State {
	case bulk.Done:
		return components.Good
	case bulk.Failed:
		return components.Bad
	case bulk.Canceled:
		return components.Neutral
	}
	return components.Info
}

func (j BulkJob) progress() components.ProgressProps {
	p := components.ProgressProps{ID: "job-progress", Label: sentence(bulkVerbs[j.Kind].past), Done: j.Done, Total: max(j.Expected, j.Done)}
	if !j.Exact && !j.State.Over() {
		p.Text = "More than was counted at the beginning: the end is not known."
		p.Total = 0
	}
	return p
}

func (j BulkJob) outcome() string {
	switch j.State {
	case bulk.Done:
		return fmt.Sprintf("Done: %s %s.", components.Count(j.Done), bulkVerbs[j.Kind].past)
	case bulk.Canceled:
		return fmt.Sprintf("Canceled after %s. What it did stays done.", components.Count(j.Done))
	case bulk.Failed:
		return "It failed. " + j.Failure
	case bulk.Queued:
		return "It begins in a moment."
	}
	return "It is under way. You may leave this page."
}

// BulkJobsView is the list of jobs.
type BulkJobsView struct {
	Shell        layout.Shell
	Root         string
	Rows         []BulkJob
	Newer, Older string
}

// outcomeNote says what the counts of an outcome are counts of.
func outcomeNote(o bulk.Outcome) string {
	if !o.Exact {
		return "What became of the first " + components.Count(o.Made) + " that this job made"
	}
	return "What became of the " + components.Many(o.Made, "delivery", "deliveries") + " that this job made"
}

func badIf(bad bool) components.Tone {
	if bad {
		return components.Bad
	}
	return components.Neutral
}
