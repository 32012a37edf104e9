package pages

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"posthorn/domain/history"
	"posthorn/views/components"
)

// StoredDays are the days in storage that a list leaves out, newest first. Lists show them after their last row.
type StoredDays struct {
	Root     string
	Here     string // the list's own page, to which the buttons lead back
	Noun     StoredNoun
	Restores bool // the actor may bring days back
	Days     []history.Day
}

// StoredNoun is what a list is of.
type StoredNoun string

// The lists that leave days out.
const (
	StoredDeliveries StoredNoun = "deliveries"
	StoredEvents     StoredNoun = "events"
)

// StoredAnchor is where a list shows its days in storage.
const StoredAnchor = "#storage"

// open is the list of a day in storage, read from there.
func (v StoredDays) open(d history.Day) templ.SafeURL {
	return templ.SafeURL(v.Root + "/" + string(v.Noun) + "?stored_day=" + d.At.Format(time.DateOnly))
}

func dayName(d history.Day) string { return d.At.Format("2 January 2006") }

// count says how much of what the list shows a day has.
func (v StoredDays) count(days ...history.Day) string {
	n := int64(0)
	for _, d := range days {
		if v.Noun == StoredEvents {
			n += d.Counts.Events
		} else {
			n += d.Counts.Deliveries
		}
	}
	if v.Noun == StoredEvents {
		return components.Many(n, "event", "events")
	}
	return components.Many(n, "delivery", "deliveries")
}

// sum says how many days there are, and how much they have.
func (v StoredDays) sum(days []history.Day) string {
	return components.Many(int64(len(days)), "day", "days") + ", " + v.count(days...)
}

func (v StoredDays) text() string {
	text := "Older days are in storage, and their " + string(v.Noun) + " aren't listed here. Open a day to read it from storage, which takes longer. "
	if v.Restores {
		return text + "Bring a day back to search it and to act on many."
	}
	return text + "An owner, an admin, or a developer can bring a day back."
}

// empty is what an empty list says that leaves days out.
func (v StoredDays) empty(unfiltered bool) string {
	if unfiltered {
		return "The " + string(v.Noun) + " of this tenant are in storage."
	}
	return "No " + string(v.Noun) + " outside storage match these filters."
}

// returning are the days that are being brought back.
func (v StoredDays) returning() (some []history.Day) {
	for _, d := range v.Days {
		if d.State == history.Returning {
			some = append(some, d)
		}
	}
	return some
}

// months are the other days, by month.
func (v StoredDays) months() (all [][]history.Day) {
	month := ""
	for _, d := range v.Days {
		if d.State == history.Returning {
			continue
		}
		if m := d.At.Format("2006-01"); m != month {
			month = m
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], d)
	}
	return all
}

// span names days of one month, newest first, by the ranges that they make: "1 to 20 September 2026", "3, 7 to 9, and
// 30 September 2026".
func span(days []history.Day) string {
	var ranges []string
	for i := len(days) - 1; i >= 0; i-- {
		first := days[i].At.Day()
		for i > 0 && days[i-1].At.Equal(days[i].At.AddDate(0, 0, 1)) {
			i--
		}
		text := strconv.Itoa(first)
		if last := days[i].At.Day(); last != first {
			text += " to " + strconv.Itoa(last)
		}
		ranges = append(ranges, text)
	}
	text := ranges[0]
	switch n := len(ranges); {
	case n == 2:
		text += " and " + ranges[1]
	case n > 2:
		text = strings.Join(ranges[:n-1], ", ") + ", and " + ranges[n-1]
	}
	return text + days[0].At.Format(" January 2006")
}
