package source

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/words"
)

// The bounds of messages, in bytes.
const (
	// MaxMessage is the largest message that a source takes.
	MaxMessage = 16 << 20
	// maxMapped is the largest message that a mapping is applied to.
	maxMapped = 1 << 20
)

// Message is a message of a queue. It waits for its mapping as its JSON.
type Message struct {
	ID        string            `json:"id,omitempty"`        // that the broker or the publisher gave it
	Type      string            `json:"type,omitempty"`      // AMQP's property
	Key       string            `json:"key,omitempty"`       // a record's key, a routing key, or a message group
	Queue     string            `json:"queue,omitempty"`     // or the topic
	Partition int32             `json:"partition,omitempty"` // of a topic
	Offset    int64             `json:"offset,omitempty"`
	Time      *time.Time        `json:"time,omitempty"` // that the broker or the publisher says; nil: neither does
	Headers   map[string]string `json:"headers,omitempty"`
	Text      string            `json:"text,omitempty"`   // the body
	Bytes     []byte            `json:"base64,omitempty"` // the body, where it is not UTF-8

	Control     bool `json:"-"` // of the topic's own: it has a place, and is no message
	Redelivered bool `json:"-"` // the broker says that it was delivered before
	Handle      any  `json:"-"` // by which it is acknowledged
}

// SetBody sets the body.
func (m *Message) SetBody(body []byte) {
	if m.Text, m.Bytes = string(body), nil; !utf8.Valid(body) {
		m.Text, m.Bytes = "", body
	}
}

// Body is the body.
func (m Message) Body() []byte {
	if m.Bytes != nil {
		return m.Bytes
	}
	return []byte(m.Text)
}

// Encode is the message as it is stored. large: the mapping is not applied to it.
func (m Message) Encode() (text []byte, large bool) {
	text, _ = json.Marshal(m) // texts alone
	return text, len(m.Text)+len(m.Bytes) > maxMapped || len(text) > 2*maxMapped
}

// CodeTooLarge is the code of a message that is too large for a mapping.
const CodeTooLarge = "message_too_large"

// LargeDetail says why the mapping is not applied to a large message.
var LargeDetail = "The message is larger than " + words.Number(maxMapped) + " bytes. Send a reference to the rest instead, and discard this message."

// Decode reads a stored message.
func Decode(text []byte) (m Message, err error) { return m, json.Unmarshal(text, &m) }

// Bounds are the first record that a partition has, and the one after its last.
type Bounds struct{ First, End int64 }

// Move is the place of a reader in a partition before and after some records.
type Move struct{ From, To int64 }

// Moves are the moves by partition.
type Moves map[int32]Move

// Digest is by what a message of a queue is recognized when the broker delivers it again. sure is false where nobody
// gave the message an id: then it is made of the content, and only a message that the broker says it delivers again is
// compared by it.
func (m Message) Digest() (digest []byte, sure bool) {
	h := sha256.New()
	if m.ID != "" {
		_, _ = fmt.Fprintf(h, "id\x00%s", m.ID)
	} else {
		_, _ = fmt.Fprintf(h, "content\x00%q%q", m.Type, m.Key)
		for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
			if name != "x-delivery-count" && !strings.HasPrefix(name, "x-acquired") { // the broker's own, of each delivery
				_, _ = fmt.Fprintf(h, "%q%q", name, m.Headers[name])
			}
		}
		_, _ = h.Write(m.Body())
	}
	return h.Sum(nil)[:16], m.ID != ""
}

// Unseen decides which messages are taken, given the digests that are new: of several with one digest the first.
// A message that nobody gave an id is new unless the broker delivers it again.
func Unseen(messages []Message, digests [][]byte, fresh map[string]bool) (take []int) {
	used := map[string]bool{}
	for i, m := range messages {
		d := string(digests[i])
		if fresh[d] && !used[d] || m.ID == "" && !m.Redelivered {
			take = append(take, i)
		}
		used[d] = true
	}
	return take
}
