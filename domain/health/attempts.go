package health

import "fmt"

// WarningPercent is the success rate of 24 hours below which a tenant, or an endpoint, needs somebody. A rate at the
// threshold has not crossed it.
const WarningPercent = 99

// The classes of attempts in the roll-ups, as the schema numbers them.
const (
	ClassOK = iota
	ClassRedirect
	ClassClient
	ClassServer
	ClassNetwork
	ClassTimeout
	ClassBlocked
	classes
)

// Attempts counts attempts by the roll-ups' class.
type Attempts [classes]int64

// Add enters other attempts.
func (a *Attempts) Add(o Attempts) {
	for class, n := range o {
		a[class] += n
	}
}

// Rate is how many attempts succeeded.
func (a Attempts) Rate() Rate {
	r := Rate{Succeeded: max(a[ClassOK], 0)}
	for _, n := range a {
		r.Total += max(n, 0)
	}
	return r
}

// Rate is a success rate.
type Rate struct{ Succeeded, Total int64 }

// Known reports whether there is anything to go by.
func (r Rate) Known() bool { return r.Total > 0 }

// Failed is how many attempts did not succeed.
func (r Rate) Failed() int64 { return r.Total - r.Succeeded }

// Share is the rate from 0 to 1; 0 when it is not known.
func (r Rate) Share() float64 {
	if !r.Known() {
		return 0
	}
	return float64(r.Succeeded) / float64(r.Total)
}

// String writes the rate in percent with one digit, rounded down so that what is below a threshold never reads as the
// threshold: "98.9%". A rate that is not known is a dash.
func (r Rate) String() string {
	if !r.Known() {
		return "-"
	}
	tenths := r.Succeeded * 1000 / r.Total
	return fmt.Sprintf("%d.%d%%", tenths/10, tenths%10)
}

// Under reports whether fewer than so many percent succeeded.
func (r Rate) Under(percent int64) bool { return r.Known() && r.Succeeded*100 < r.Total*percent }

// Severity is how bad something is. The zero value is OK.
type Severity int16

// The severities, in their order.
const (
	OK Severity = iota
	Warned
	Critical
)

var severityWords = [...]string{"ok", "warning", "critical"}

// String is the word for the severity in the API and on screens.
func (s Severity) String() string {
	if s < 0 || int(s) >= len(severityWords) {
		return fmt.Sprintf("severity_%d", int(s))
	}
	return severityWords[s]
}
