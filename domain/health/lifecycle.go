package health

import (
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
)

// Cause is what can move an endpoint from one state to another.
type Cause string

// The causes.
const (
	Pause      Cause = "pause"       // by a member
	Resume     Cause = "resume"      // by a member
	Disable    Cause = "disable"     // by Posthorn, for a Reason
	Verified   Cause = "verified"    // the endpoint has proven itself
	Verify     Cause = "verify"      // a verification is requested
	URLChanged Cause = "url_changed" // another URL has proven nothing yet
)

// Causes lists the causes.
func Causes() []Cause { return []Cause{Pause, Resume, Disable, Verified, Verify, URLChanged} }

// Arrow is one way from a state to another. Where Verify is set and the state stays, the verification's success is the
// next arrow.
type Arrow struct {
	From endpoint.Status
	By   Cause
	endpoint.Change
}

// own are the arrows that no request names. What members ask for is decided by endpoint.Pause and endpoint.Resume.
var own = []Arrow{
	{endpoint.Unverified, Verified, endpoint.Change{To: endpoint.Active}},
	{endpoint.Disabled, Verified, endpoint.Change{To: endpoint.Active}},
	{endpoint.Active, Disable, endpoint.Change{To: endpoint.Disabled}},
	{endpoint.Unverified, URLChanged, endpoint.Change{To: endpoint.Unverified, Verify: true}},
	{endpoint.Active, URLChanged, endpoint.Change{To: endpoint.Unverified, Verify: true}},
	{endpoint.Paused, URLChanged, endpoint.Change{To: endpoint.Unverified, Verify: true}},
	{endpoint.Disabled, URLChanged, endpoint.Change{To: endpoint.Unverified, Verify: true}},
	{endpoint.Unverified, Verify, endpoint.Change{To: endpoint.Unverified, Verify: true}},
	{endpoint.Active, Verify, endpoint.Change{To: endpoint.Active, Verify: true}},
	{endpoint.Paused, Verify, endpoint.Change{To: endpoint.Paused, Verify: true}},
	{endpoint.Disabled, Verify, endpoint.Change{To: endpoint.Disabled, Verify: true}},
}

// Next says what a cause does to an endpoint in a state. An impossible request of a member is refused with a
// *fault.Error. A late step of Posthorn itself (a verification or a verdict after the endpoint was paused) changes
// nothing.
func Next(from endpoint.Status, by Cause) (endpoint.Change, error) {
	switch by {
	case Pause:
		return endpoint.Pause(from)
	case Resume:
		return endpoint.Resume(from)
	case Disable, Verified, Verify, URLChanged:
	default:
		return endpoint.Change{To: from}, fault.New(fault.Internal, "cause_unknown", "Unknown change of an endpoint's state: "+string(by)+".")
	}
	for _, a := range own {
		if a.From == from && a.By == by {
			return a.Change, nil
		}
	}
	return endpoint.Change{To: from}, nil
}

// Arrows lists every way that changes a state or sends a verification, for documents and tests.
func Arrows() []Arrow {
	var all []Arrow
	for _, from := range endpoint.Statuses() {
		for _, by := range Causes() {
			if c, err := Next(from, by); err == nil && (c.To != from || c.Verify) {
				all = append(all, Arrow{from, by, c})
			}
		}
	}
	return all
}

// Holds reports whether deliveries to an endpoint in a state wait as held.
func Holds(s endpoint.Status) bool { return s != endpoint.Active }
