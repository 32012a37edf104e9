package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/bulk"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// BulkConfirmView asks before an action on many deliveries.
type BulkConfirmView struct {
	Shell   layout.Shell
	Root    string
	Back    string // the list with the form
	Kind    bulk.Kind
	Count   int64
	Exact   bool  // false: Count is a lower bound
	Repeats int64 // of a replay: how many were replayed before
	Skipped []SkipCount
	Filter  []Fact              // the selection in words
	Fields  map[string][]string // the hidden fields of the form
	Reason  components.FieldProps
	Pace    components.FieldProps
	Wrong   map[string]string
}

// Fact is a property and its value.
type Fact struct{ Label, Value string }

// SkipCount is how many deliveries a job leaves alone for a reason.
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
	bulk.SkipWaiting:         "still in progress",
	bulk.SkipSettled:         "already finished",
	bulk.SkipHeld:            "held: the endpoint receives nothing now",
	bulk.SkipBlocked:         "waiting for an older delivery with the same key",
	bulk.SkipReady:           "about to be sent",
	bulk.SkipReplayed:        "already replayed",
	bulk.SkipEndpointDeleted: "endpoint deleted",
	bulk.SkipEventExpired:    "event older than the retention period",
	bulk.SkipExpunged:        "event data deleted",
	bulk.SkipAlready:         "already done",
}

func (s SkipCount) text() string {
	words := skipWords[s.Why]
	if words == "" {
		words = string(s.Why)
	}
	return components.Count(s.Count) + " " + words
}

var bulkVerbs = map[bulk.Kind]struct{ verb, past, noun string }{
	bulk.Replay:        {"replay", "replayed", "deliveries"},
	bulk.ReplayMissing: {"send", "sent", "missing events"},
	bulk.RetryNow:      {"retry", "retried", "deliveries"},
	bulk.Cancel:        {"cancel", "canceled", "deliveries"},
	bulk.Archive:       {"archive", "archived", "deliveries"},
	bulk.Unarchive:     {"unarchive", "unarchived", "deliveries"},
	bulk.Drop:          {"drop", "dropped", "held deliveries"},
	bulk.Expunge:       {"expunge", "expunged", "events"},
}

// what names the action and the count: "Replay 1,200 deliveries".
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
	return components.Sentence(w.verb) + " " + count + " " + noun
}

func (v BulkConfirmView) title() string {
	if v.Count == 0 {
		return "Nothing to " + bulkVerbs[v.Kind].verb
	}
	return what(v.Kind, v.Count, v.Exact) + "?"
}

// repeats says how many of the deliveries were replayed before.
func (v BulkConfirmView) repeats() string {
	n := components.Many(v.Repeats, "of these deliveries was", "of these deliveries were")
	return n + " already replayed and will be sent again."
}

func (v BulkConfirmView) text() string {
	if v.Count == 0 {
		return "None of these deliveries can be " + bulkVerbs[v.Kind].past + ". Nothing changed."
	}
	switch v.Kind {
	case bulk.Replay:
		return "Each is sent again as a new delivery with the same event and body, at the end of its endpoint's queue and at the endpoint's own rate."
	case bulk.RetryNow:
		return "Each is sent as soon as its endpoint has capacity, instead of at its scheduled time."
	case bulk.Cancel:
		return "None of them is retried. Requests in flight aren't stopped. Canceled deliveries can be replayed."
	case bulk.Archive:
		return "Archived deliveries are hidden from lists. Nothing is deleted, and you can unarchive them."
	}
	return "They appear in lists again."
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
	Shell  layout.Shell
	Root   string
	Stale  string
	Job    BulkJob
	Filter []Fact // the selection in words
	Acts   bool

	Response *AttemptDetail // to the sample of a sampled job; nil: none yet
}

// Live reports whether the page still changes: the job runs, or its deliveries are in progress.
func (v BulkJobView) Live() bool {
	return !v.Job.State.Over() || v.Job.Outcome != nil && v.Job.Outcome.Waiting > 0
}

// poll is the interval of the page's refresh: short while something is about to happen.
func (v BulkJobView) poll() string {
	s := v.Job.Sample
	if v.Job.State.Over() || v.Job.State == bulk.Sampled && (s == nil || s.Status.Terminal()) {
		return "every 5s"
	}
	return "every 1s"
}

func (v BulkJobView) path() string { return v.Root + "/bulk-jobs/" + id.Job.Format(v.Job.ID) }

// made is the address of the job's deliveries, of one status or all.
func (v BulkJobView) made(status string) string {
	to := v.Root + "/deliveries?job=" + id.Job.Format(v.Job.ID)
	if status != "" {
		to += "&status=" + status
	}
	return to
}

// BulkJob is a job with the name of who started it; empty if unknown, or hidden from the reader.
type BulkJob struct {
	show.Job
	AskedName string
}

// rest is the label of the button that continues a sampled job.
func (j BulkJob) rest() string {
	switch n := j.Rest(); {
	case !j.Exact:
		return "Send the others"
	case n == 1:
		return "Send the other one"
	default:
		return "Send the other " + components.Count(n)
	}
}

// restKind emphasizes the button if the sample was delivered.
func (j BulkJob) restKind() components.Kind {
	if j.Sample != nil && j.Sample.Status == delivery.Delivered {
		return components.Primary
	}
	return components.Secondary
}

func (j BulkJob) name() string { return JobName(j.Kind) }

// JobName is the heading of a kind of job: "Replay deliveries".
func JobName(k bulk.Kind) string {
	w := bulkVerbs[k]
	return components.Sentence(w.verb) + " " + w.noun
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
	p := components.ProgressProps{
		ID:    "job-progress",
		Label: components.Sentence(bulkVerbs[j.Kind].past),
		Done:  j.Done,
		Total: max(j.Expected, j.Done),
	}
	if !j.Exact && !j.State.Over() {
		p.Text = "More than the initial count; the total isn't known."
		p.Total = 0
	}
	return p
}

func (j BulkJob) said() string {
	switch j.State {
	case bulk.Done:
		return fmt.Sprintf("Done: %s %s.", components.Count(j.Done), bulkVerbs[j.Kind].past)
	case bulk.Sampled:
		return "One was sent. The rest waits for your decision."
	case bulk.Canceled:
		if !j.SampleID.IsZero() && j.Done == 1 {
			return "Stopped after the sample."
		}
		return fmt.Sprintf("Canceled after %s. What it did stays done.", components.Count(j.Done))
	case bulk.Failed:
		return "Failed: " + j.Failure
	case bulk.Queued:
		return "Starts in a moment."
	}
	return "In progress. You can leave this page."
}

// BulkJobsView is the list of jobs.
type BulkJobsView struct {
	Shell        layout.Shell
	Root         string
	Rows         []BulkJob
	Newer, Older string
}

// outcomeNote says what an outcome counts.
func outcomeNote(o bulk.Outcome) string {
	if !o.Exact {
		return "Outcome of the first " + components.Count(o.Made) + " created by this job"
	}
	return "Outcome of the " + components.Many(o.Made, "delivery", "deliveries") + " created by this job"
}

func badIf(bad bool) components.Tone {
	if bad {
		return components.Bad
	}
	return components.Neutral
}

// asker is who started a job: the name if known, else the kind of caller.
func (j BulkJob) asker() string {
	return cmp.Or(j.AskedName, components.Sentence(j.AskedKind))
}
