package delivery

import "posthorn/domain/fault"

// DeadLetter is the word by which lists, jobs and the command line ask for dead letters: deliveries that failed
// permanently, were not replayed, are not archived, and are no trial. A trial is a test event, or anything that went to
// a test inbox or to a developer's listener.
const DeadLetter = "dead_letter"

// CodeReplayed is the code of RefuseReplayAgain.
const CodeReplayed = "delivery_replayed"

// RefuseReplayAgain is for a delivery that was replayed before, by a request that does not say that this is meant.
// replay is the id of its newest replay; empty where it is not known.
func RefuseReplayAgain(replay string) error {
	detail, last := "The delivery was replayed before.", "It was replayed before."
	if replay != "" {
		detail, last = "The delivery was replayed before, as "+replay+".", "Its newest replay is "+replay+"."
	}
	return &fault.Error{
		Kind:   fault.Conflict,
		Code:   CodeReplayed,
		Detail: detail + " To replay it again, send \"again\": true.",
		Fields: []fault.Field{{Name: "replayed_by", Code: CodeReplayed, Detail: last}},
	}
}
