package mail

import (
	"time"

	"posthorn/domain/id"
)

// Kept is a mail that the console driver kept instead of sending it.
type Kept struct {
	ID      id.UUID           `json:"-"`
	At      time.Time         `json:"at"`
	Kind    Kind              `json:"kind"`
	From    string            `json:"from"`
	To      string            `json:"to"`
	Subject string            `json:"subject"`
	HTML    string            `json:"html"`
	Text    string            `json:"text"`
	Headers map[string]string `json:"headers,omitempty"`
}
