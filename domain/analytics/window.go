package analytics

import (
	"fmt"
	"time"

	"posthorn/domain/fault"
)

// Width is how long a bucket of a series is.
type Width string

// The widths.
const (
	Minute Width = "minute"
	Hour   Width = "hour"
	Day    Width = "day"
)

// widths says of each width how long it is, how far a series reaches back by itself, and at most. Roll-ups by minute
// are kept for three days.
var widths = map[Width]struct{ bucket, usual, most time.Duration }{
	Minute: {time.Minute, time.Hour, 24 * time.Hour},
	Hour:   {time.Hour, 24 * time.Hour, 31 * 24 * time.Hour},
	Day:    {24 * time.Hour, 30 * 24 * time.Hour, 366 * 24 * time.Hour},
}

// Bucket is the width as a duration. Buckets begin at its multiples in UTC.
func (w Width) Bucket() time.Duration { return widths[w].bucket }

// Window is a stretch of time and where its numbers are: in the roll-ups by hour from Hours[0] to Hours[1], and in
// those by minute from Minutes[0] to Minutes[1] and from Minutes[2] to Minutes[3]. What is not folded yet counts in
// between.
type Window struct {
	Since, Until time.Time
	Hours        [2]time.Time
	Minutes      [4]time.Time
}

// hoursLag is how many hours the roll-ups by hour can still lack minutes: the present one and the one before.
const hoursLag = 2 * time.Hour

// Between is the window from since to until, at minutes' precision.
func Between(since, until, now time.Time) Window {
	since, until = since.UTC().Truncate(time.Minute), until.UTC()
	w := Window{Since: since, Until: until}
	first := since.Truncate(time.Hour)
	if first.Before(since) {
		first = first.Add(time.Hour)
	}
	last := until.Truncate(time.Hour)
	if settled := now.UTC().Truncate(time.Hour).Add(time.Hour - hoursLag); settled.Before(last) {
		last = settled
	}
	if !first.Before(last) {
		w.Minutes = [4]time.Time{since, until, until, until}
		w.Hours = [2]time.Time{until, until}
		return w
	}
	w.Hours = [2]time.Time{first, last}
	w.Minutes = [4]time.Time{since, first, last, until}
	return w
}

// Asked is the window of a series by a width. A zero since or until means the usual one; both are put to the beginning
// and the end of their buckets. Errors are *fault.Error of since.
func Asked(by Width, since, until, now time.Time) (Window, error) {
	w := widths[by]
	if until.IsZero() || until.After(now) {
		until = now
	}
	until = until.UTC()
	if end := until.Truncate(w.bucket); end.Before(until) {
		until = end.Add(w.bucket)
	}
	if since.IsZero() {
		since = until.Add(-w.usual)
	}
	since = since.UTC().Truncate(w.bucket)
	if !since.Before(until) {
		return Window{}, fault.InvalidField("since", "window_empty", "since must be before until, and not in the future.")
	}
	if until.Sub(since) > w.most {
		return Window{}, fault.InvalidField("since", "window_too_long", fmt.Sprintf(
			"By %s, a series can cover at most %s. Ask for a shorter time range or wider buckets.", by, words(w.most)))
	}
	if by == Minute {
		return Window{
			Since:   since,
			Until:   until,
			Minutes: [4]time.Time{since, until, until, until},
			Hours:   [2]time.Time{until, until},
		}, nil
	}
	return Between(since, until, now), nil
}

func words(d time.Duration) string {
	if d <= 24*time.Hour {
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
