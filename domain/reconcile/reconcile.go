// Package reconcile says what the books of a tenant and day must agree with, and what it is called where they do not.
package reconcile

import (
	"fmt"
	"strings"
	"time"
)

// Page is one tenant's deliveries of one UTC day, by the day in which they were made.
type Page struct {
	Accepted  int64 `json:"accepted"`
	Delivered int64 `json:"delivered"`
	Failed    int64 `json:"failed"`
	Canceled  int64 `json:"canceled"`
	Waiting   int64 `json:"waiting"` // pending, retrying or held; by the books what has not ended
	Queued    int64 `json:"queued"`  // places in the queue
	Events    int64 `json:"events"`  // that were stored on the day, whether or not they made deliveries; 0 where they were not counted
}

// Entered is the page that the books' entries make: what was accepted and has not ended must wait, and have its place
// in the queue.
func Entered(accepted, delivered, failed, canceled int64) Page {
	waiting := accepted - delivered - failed - canceled
	return Page{
		Accepted:  accepted,
		Delivered: delivered,
		Failed:    failed,
		Canceled:  canceled,
		Waiting:   waiting,
		Queued:    waiting,
	}
}

// Placed is how many of the waiting deliveries have their row in the queue. If all have, further rows belong to no
// waiting delivery, and count. If some have none, as many rows of others must not hide it.
func Placed(waiting, unqueued, queued int64) int64 {
	if unqueued > 0 {
		return waiting - unqueued
	}
	return queued
}

// numbers are a page's, in the order of numberNames.
func (p Page) numbers() [7]int64 {
	return [7]int64{p.Accepted, p.Delivered, p.Failed, p.Canceled, p.Waiting, p.Queued, p.Events}
}

var numberNames = [7]string{"accepted", "delivered", "failed", "canceled", "waiting", "queued", "events"}

// Amount is by how much two pages differ in the number in which they differ most; 0: they agree.
func Amount(ledger, tables Page) (amount int64) {
	in := tables.numbers()
	for i, n := range ledger.numbers() {
		amount = max(amount, n-in[i], in[i]-n)
	}
	return amount
}

// Gap says what the tables have more or less than the books, number by number: "accepted -1, delivered -1". It is the
// same for as long as the same is missing, whatever else becomes of the day's deliveries.
func (f Finding) Gap() string {
	var words []string
	in := f.Ledger.numbers()
	for i, n := range f.Tables.numbers() {
		if n != in[i] {
			words = append(words, fmt.Sprintf("%s %+d", numberNames[i], n-in[i]))
		}
	}
	return strings.Join(words, ", ")
}

// Finding is what the check found of a page that differs.
type Finding struct {
	Ledger Page  `json:"books"`
	Tables Page  `json:"tables"`
	Rows   []Row `json:"rows,omitempty"` // as far as something still tells of them
	More   bool  `json:"more,omitempty"` // there are more rows
}

// Row is one delivery that the tables contradict themselves about.
type Row struct {
	Delivery string `json:"delivery"`
	What     string `json:"what"` // in words for operators
}

// Sentences says what each kind of contradiction means, by the word that the query has for it.
var Sentences = map[string]string{
	"unqueued":   "It is waiting but isn't in the queue, so it won't be sent.",
	"unknown":    "It is in the queue, but there is no such delivery.",
	"ended":      "It is finished, but still in the queue.",
	"attempted":  "It has attempts, but there is no such delivery.",
	"deadletter": "It is listed as a dead letter, but there is no such failed delivery.",
	"canceled":   "It is listed as canceled, but there is no such canceled delivery.",

	"eventless":   "It belongs to an event of the same day, but there is no such event.",
	"unattempted": "It is delivered, but has no recorded attempt.",
	"unlisted":    "It failed, but isn't listed as a dead letter.",
	"uncalled":    "It is canceled, but isn't listed as canceled.",
}

// Split tells the days up to now into yesterday and today, and those before.
func Split(days []time.Time, now time.Time) (recent, history []time.Time) {
	today := now.UTC().Truncate(24 * time.Hour)
	for _, day := range days {
		switch {
		case day.After(today):
		case day.Before(today.AddDate(0, 0, -1)):
			history = append(history, day)
		default:
			recent = append(recent, day)
		}
	}
	return recent, history
}

// Next is where a job continues: the first of some days, in their order, after the given day; the first of all if there
// is none. again says that it starts over.
func Next(days []time.Time, day time.Time) (next time.Time, again bool) {
	for _, d := range days {
		if d.After(day) {
			return d, false
		}
	}
	if len(days) == 0 {
		return day, true
	}
	return days[0], true
}
