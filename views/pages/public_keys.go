package pages

import (
	"strconv"

	"posthorn/domain/httpsig"
	"posthorn/views/components"
)

var keyTones = map[httpsig.State]components.Tone{
	httpsig.Next:    components.Neutral,
	httpsig.Signing: components.Good,
	httpsig.Retired: components.Neutral,
}

var keyWords = map[httpsig.State]string{
	httpsig.Next:    "not yet",
	httpsig.Signing: "signing",
	httpsig.Retired: "no longer",
}

// startOptions are when a new key begins to sign.
func startOptions() []components.Option {
	return []components.Option{
		{Label: "In 24 hours, when receivers have read it", Value: strconv.Itoa(httpsig.DefaultStart)},
		{Label: "In 7 days", Value: strconv.Itoa(httpsig.MaxStart)},
		{Label: "Now: all other keys are withdrawn", Value: "0"},
	}
}
