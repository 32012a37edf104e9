package endpoint

import (
	"slices"

	"posthorn/domain/fault"
	"posthorn/domain/id"
)

// CheckState is how far the check of a secret is: whether the receiver accepts a delivery that this secret alone signs.
type CheckState string

// The states of a check.
const (
	CheckPending  CheckState = "pending"
	CheckAccepted CheckState = "accepted"
	CheckRejected CheckState = "rejected"
)

// CheckSecretKind says whether the response of an endpoint of a kind tells anything about a signature.
func CheckSecretKind(k Kind) error {
	switch k {
	case Listen:
		return ErrListener
	case Feed:
		return ErrFeed
	case Kafka, RabbitMQ, SQS, S3:
		return fault.New(
			fault.Conflict,
			"secret_uncheckable",
			"A broker accepts every message, whichever secret signs it. Check the signature in your consumer.",
		)
	}
	return nil
}

// LiveSecret is a live secret, as far as ending another one depends on it.
type LiveSecret struct {
	ID       id.UUID
	Accepted bool // a delivery that it alone signed was accepted
}

// Successor is the secret that a receiver needs once a live secret has ended: the one that signs then, or the newest of
// those that do. live are newest first; chosen is the secret that signs where one signs at a time. There is none if the
// secret is the only one.
func Successor(s Settings, live []LiveSecret, ended id.UUID, chosen *id.UUID) (next LiveSecret, there bool) {
	var left []LiveSecret
	var ids []id.UUID
	for _, one := range live {
		if one.ID != ended {
			left = append(left, one)
			ids = append(ids, one.ID)
		}
	}
	if len(left) == 0 {
		return next, false
	}
	if s.SignsOne() {
		return left[Slot(ids, chosen)], true
	}
	// Any of them is enough for the receiver.
	if i := slices.IndexFunc(left, func(one LiveSecret) bool { return one.Accepted }); i >= 0 {
		return left[i], true
	}
	return left[0], true
}

// CheckEnd says whether a live secret can end before its successor. unchecked: whoever asks knows that no receiver has
// accepted that one.
func CheckEnd(next LiveSecret, there, unchecked bool) error {
	switch {
	case !there:
		return fault.New(
			fault.Conflict,
			"secret_last",
			"The endpoint has no other live secret to sign with. Rotate the secret without an overlap to replace it immediately.",
		)
	case unchecked || next.Accepted:
		return nil
	}
	return fault.New(
		fault.Conflict,
		"secret_unchecked",
		"The receiver hasn't accepted a delivery signed with the remaining secret alone. Check that secret first, or set unchecked to end this one anyway.",
	)
}

// CheckExtend says whether the overlap of a live secret can be set to so many seconds from now.
func CheckExtend(ends bool, seconds int) error {
	if err := CheckOverlap(seconds); err != nil {
		return err
	}
	switch {
	case seconds == 0:
		return fault.InvalidField("overlap_seconds", "out_of_range", "An overlap can be extended by 1 second or more. To end the secret now, use its end operation.")
	case !ends:
		return fault.New(fault.Conflict, "secret_without_end", "This secret has no end, so there is nothing to extend.")
	}
	return nil
}
