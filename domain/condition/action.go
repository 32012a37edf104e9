package condition

import (
	"slices"

	"posthorn/domain/access"
)

// Action is something that the endpoint's owner can do about a condition. Programs see the words.
type Action string

// The actions.
const (
	Resume   Action = "resume"    // send again; a disabled endpoint is verified first
	Verify   Action = "verify"    // send the verification again
	ProbeNow Action = "probe_now" // send a test event, which is the next probe
	SendNow  Action = "send_now"  // end the wait that the endpoint asked for
	Replay   Action = "replay"    // send again what failed permanently
	Recover  Action = "recover"   // send again everything that failed since a time
)

// offers says how each surface offers an action: the label of its button, the words that follow "can", the command up
// to the endpoint's id and after it, and what a member needs.
var offers = map[Action]struct {
	label, phrase, command, flags string
	permission                    access.Action
}{
	Resume: {"Resume endpoint", "resume the endpoint", "posthorn endpoints resume", "", access.ChangeEndpoints},
	Verify: {"Verify now", "verify it now", "posthorn endpoints verify", "", access.ChangeEndpoints},
	ProbeNow: {
		"Probe now with a test event", "probe it now with a test event", "posthorn endpoints test", "",
		access.ChangeEndpoints,
	},
	// Resuming an active endpoint ends its wait.
	SendNow: {"Send now", "send now", "posthorn endpoints resume", "", access.ChangeEndpoints},
	Replay: {
		"Replay failed deliveries", "replay its failed deliveries", "posthorn dlq replay-all --endpoint", "",
		access.ActOnDeliveries,
	},
	Recover: {
		"Recover since…", "recover all failures since a time", "posthorn endpoints recover", " --since 24h",
		access.ActOnDeliveries,
	},
}

// Label is what the button that does it says.
func (a Action) Label() string { return offers[a].label }

// Phrase is what the owner can do, to follow "can".
func (a Action) Phrase() string { return offers[a].phrase }

// Command is the command that does it to an endpoint; empty for an action that is not known.
func (a Action) Command(endpoint string) string {
	o, known := offers[a]
	if !known {
		return ""
	}
	return o.command + " " + endpoint + o.flags
}

// Permission is what a member needs to do it.
func (a Action) Permission() access.Action { return offers[a].permission }

// Actions lists what the owner can do, the one that helps most first. About what operators did there is nothing.
func (c Condition) Actions() []Action {
	switch c.State {
	case Disabled:
		if c.Verifying { // it was resumed: the verification decides
			return []Action{Verify, Replay, Recover}
		}
		return []Action{Resume, Replay, Recover}
	case Failing:
		return []Action{ProbeNow, Replay, Recover}
	case AskedToWait:
		return []Action{SendNow}
	case Unverified:
		return []Action{Verify}
	case Paused:
		return []Action{Resume}
	case Active:
		if c.Degraded {
			return []Action{Replay, Recover}
		}
	}
	return nil
}

// Can reports whether an action is offered.
func (c Condition) Can(a Action) bool { return slices.Contains(c.Actions(), a) }
