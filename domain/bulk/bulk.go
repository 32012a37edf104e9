// Package bulk holds the rules of actions on many deliveries or events at once: the kinds, what they can select, and
// why a selected delivery is left as it is. See docs/design.md, "Bulk jobs".
package bulk

import (
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/fault"
)

// Kind is what a job does to each of what it selects. Stored and shown as it is.
type Kind string

// The kinds.
const (
	Replay        Kind = "replay"         // sends settled deliveries again, as new ones
	ReplayMissing Kind = "replay_missing" // sends past events that an endpoint never got
	RetryNow      Kind = "retry_now"
	Cancel        Kind = "cancel"
	Archive       Kind = "archive"
	Unarchive     Kind = "unarchive"
	Drop          Kind = "drop"    // cancels what was held when an endpoint was resumed
	Expunge       Kind = "expunge" // destroys the data of events
)

// State is how far a job has come. Stored and shown as it is.
type State string

// The states.
const (
	Queued   State = "queued"
	Running  State = "running"
	Sampled  State = "sampled" // one was sent, and a person decides on the rest
	Done     State = "done"
	Canceled State = "canceled"
	Failed   State = "failed"
)

// Over reports whether nothing more happens to a job.
func (s State) Over() bool { return s == Done || s == Canceled || s == Failed }

// SampleWaits is how long a job waits for a decision after its sample. Then it is canceled.
const SampleWaits = 24 * time.Hour

// Skip is why a job leaves alone something that its filter selects. Stored and shown as it is.
type Skip string

// The reasons.
const (
	SkipNone            Skip = ""
	SkipWaiting         Skip = "waiting"          // not settled: a replay would send it twice
	SkipSettled         Skip = "settled"          // ended before its turn came
	SkipHeld            Skip = "held"             // its endpoint receives nothing now
	SkipBlocked         Skip = "waits_its_turn"   // behind an older one of its ordering key
	SkipReady           Skip = "ready"            // goes as soon as its lane lets it, without a push
	SkipReplayed        Skip = "replayed"         // a dead letter that was sent again before
	SkipEndpointDeleted Skip = "endpoint_deleted" //
	SkipEventExpired    Skip = "event_expired"    // older than the retention
	SkipExpunged        Skip = "expunged"         // its payload was destroyed
	SkipAlready         Skip = "already"          // archived, or shown, as it is to be
)

// Chunk is how many rows one transaction of a job concerns, at most: enough to be quick, few enough that it holds its
// locks for some tens of milliseconds.
const Chunk = 500

// MaxIDs is how many deliveries a filter can name.
const MaxIDs = 1000

// MaxPace bounds a job's pace, in rows a second.
const MaxPace = 10_000

// ChunkAt is how many rows a chunk takes at a pace (rows a second; 0: none), so that a slow job goes evenly and not in
// bursts.
func ChunkAt(pace int) int {
	if pace <= 0 {
		return Chunk
	}
	return min(pace, Chunk)
}

// selectable lists the states that the filter of a kind can select; none if the kind selects otherwise. settled says
// that it can select delivery.AllFailed (failed, retrying, and canceled after an attempt) and dead letters too.
func (k Kind) selectable() (statuses []delivery.Status, settled bool) {
	switch k {
	case Replay, Archive, Unarchive:
		return []delivery.Status{delivery.Failed, delivery.Canceled, delivery.Expired, delivery.Delivered}, true
	case RetryNow:
		return []delivery.Status{delivery.Pending, delivery.Retrying}, false
	case Cancel:
		return []delivery.Status{delivery.Pending, delivery.Retrying, delivery.Held}, false
	}
	return nil, false
}

// SkipReplay says why a delivery in a state is not replayed.
func SkipReplay(shown delivery.Status) Skip {
	if !delivery.CanReplay(shown) {
		return SkipWaiting
	}
	return SkipNone
}

// SkipRetry says why a delivery in a state is not retried at once.
func SkipRetry(shown delivery.Status) Skip {
	switch {
	case shown == delivery.Held:
		return SkipHeld
	case !delivery.CanRetryNow(shown):
		return SkipSettled
	}
	return SkipNone
}

// SkipCancel says why a delivery in a state is not canceled.
func SkipCancel(shown delivery.Status) Skip {
	if !delivery.CanCancel(shown) {
		return SkipSettled
	}
	return SkipNone
}

// SkipArchive says why a delivery in a state is not archived, or shown again; archived is what it is now.
func SkipArchive(shown delivery.Status, archived, wanted bool) Skip {
	switch {
	case !delivery.CanArchive(shown):
		return SkipWaiting
	case archived == wanted:
		return SkipAlready
	}
	return SkipNone
}

// RefuseCancelJob is for a job that is over.
func RefuseCancelJob(s State) error {
	return &fault.Error{
		Kind:   fault.Conflict,
		Code:   "bulk_job_over",
		Detail: "The job is " + string(s) + ". There is nothing left to cancel.",
		Fields: []fault.Field{{Name: "state", Code: string(s), Detail: "The job is " + string(s) + "."}},
	}
}

// RefuseContinue is for a job that waits for no decision.
func RefuseContinue(s State) error {
	return &fault.Error{
		Kind:   fault.Conflict,
		Code:   "bulk_job_not_sampled",
		Detail: "The job is " + string(s) + ". Only a job that sent a sample, and waits for a decision, can be continued.",
		Fields: []fault.Field{{Name: "state", Code: string(s), Detail: "The job is " + string(s) + "."}},
	}
}

// ErrNoSample rejects a sample if the rows at the start of the selection are skipped, one and all.
var ErrNoSample = fault.New(
	fault.Conflict,
	"bulk_sample_not_found",
	"None of the oldest deliveries in this selection can be sent. Choose a later start, or start the job without a sample.",
)
