// Package inbox holds the rules of test inboxes: endpoints whose receiver is Posthorn itself, so that a developer sees
// a first delivery, and what retries look like, before writing a receiver.
package inbox

import (
	"encoding/json"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Path is where inboxes are on this server; the token follows.
const Path = "/inbox/"

// The bounds of an inbox.
const (
	maxPerTenant = 5              // inboxes of one tenant
	Kept         = 100            // requests of one inbox, the newest
	KeptFor      = 24 * time.Hour // how long a request is shown
	MaxBody      = 64 << 10       // bytes that are kept of a body; the signature is checked over all of it
	maxHead      = 16 << 10       // bytes that are kept of the headers
	MaxRequest   = 2 << 20        // bytes of a body that is read at all: more than the largest event makes
	PerSecond    = 20             // requests that one inbox takes
	Burst        = 100
	rateLimit    = 10               // requests per second to its endpoint unless a setting overrides it
	SlowFor      = 35 * time.Second // longer than any endpoint's time-out
)

// Settings are those of a new inbox: what endpoints have by default, at a rate that an inbox takes.
func Settings(defaults endpoint.Settings) endpoint.Settings {
	s := defaults.Clone()
	rate := rateLimit
	s.Kind, s.Description, s.EventTypes, s.RateLimit, s.Burst = endpoint.Inbox, "Test inbox", []string{"*"}, &rate, nil
	return s
}

// Answer is an inbox's response to deliveries.
type Answer string

// The responses.
const (
	OK    Answer = "200"
	Error Answer = "500"
	Gone  Answer = "410"
	Slow  Answer = "slow" // nothing within the endpoint's time-out
)

// Answers lists them, the default first.
func Answers() []Answer { return []Answer{OK, Error, Gone, Slow} }

// ParseAnswer reads a response's name. The error is a *fault.Error with code inbox_answer_unknown and field answer.
func ParseAnswer(name string) (Answer, error) {
	if a := Answer(name); slices.Contains(Answers(), a) {
		return a, nil
	}
	return "", fault.InvalidField("answer", "inbox_answer_unknown", "Unknown response. Use 200, 500, 410, or slow.")
}

// Status is the response's status, as it is sent in the end.
func (a Answer) Status() int {
	switch a {
	case Error:
		return http.StatusInternalServerError
	case Gone:
		return http.StatusGone
	}
	return http.StatusOK
}

// CheckRoom says whether a tenant with so many inboxes can have one more.
func CheckRoom(has int) error {
	if has < maxPerTenant {
		return nil
	}
	return fault.New(fault.Conflict, "inboxes_limit", "A tenant can have up to 5 test inboxes. Delete one that you don't need.")
}

// verificationType is the event type of a verification.
const verificationType = "endpoint.verification"

// Challenge is the challenge in a verification's body; empty if there is none. kind is the event type as the headers
// name it, for the format raw, whose body is the data alone.
func Challenge(kind string, body []byte) string {
	var in struct {
		Type      string `json:"type"`
		Event     string `json:"event"` // the type, in the format body-hex
		Challenge string `json:"challenge"`
		Data      struct {
			Challenge string `json:"challenge"`
		} `json:"data"`
	}
	if json.Unmarshal(body, &in) != nil {
		return ""
	}
	if in.Type == verificationType || in.Event == verificationType {
		return Plain(in.Data.Challenge)
	}
	if kind == verificationType {
		return Plain(in.Challenge)
	}
	return ""
}

// Plain lets a challenge pass that is short and of letters and digits, as those of Posthorn are: nothing else is
// echoed.
func Plain(challenge string) string {
	if len(challenge) > 128 || strings.ContainsFunc(challenge, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) {
		return ""
	}
	return challenge
}

// Head is a request's headers as they are stored: sorted lines, without the values that the tenant can't read back.
// What a format sets, such as the signature, is kept: people come to see it.
func Head(h http.Header, hidden func(name string) bool) string {
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		for _, value := range h[name] {
			if (hidden(name) || egress.SensitiveHeader(name)) && !egress.FormatHeader(name) {
				value = "***"
			}
			line := name + ": " + strings.ToValidUTF8(strings.ReplaceAll(value, "\x00", ""), "\uFFFD") + "\n"
			if b.Len()+len(line) > maxHead {
				return b.String()
			}
			b.WriteString(line)
		}
	}
	return b.String()
}

// Received is a request that an inbox received, with the result of its signature check.
type Received struct {
	ID         id.UUID
	At         time.Time
	Method     string
	Challenge  bool   // a verification
	Answer     Answer // the inbox's response to deliveries at the time
	Good       bool   // the signature
	Code       string // why the signature is rejected; empty for a good one
	Detail     string
	SecretHint string // of the secret that it verifies with
	Head       string // lines of name and value; empty in lists
	Body       []byte // its start; nil in lists
	Bytes      int    // of the whole body
}

// Verdict is whether a request's signature is good, and by which secret.
type Verdict struct {
	Good   bool
	Secret int    // the index of the secret that it verifies with; -1 for none
	Code   string // why it is refused; empty for a good one
	Detail string
}

// CheckSignature checks a signature as a receiver should. secrets are the endpoint's live ones, newest first.
func CheckSignature(w signature.Wire, header http.Header, body []byte, secrets []string, now time.Time) Verdict {
	get := func(name string) string { return header.Get(textproto.CanonicalMIMEHeaderKey(name)) }
	v := Verdict{Secret: -1, Code: signature.CodeSecretRefused, Detail: "The endpoint has no live secret."}
	for i, secret := range secrets {
		e := fault.As(w.Verify(get, body, []string{secret}, now, signature.DefaultTolerance))
		if e == nil {
			return Verdict{Good: true, Secret: i}
		}
		v.Code, v.Detail = e.Code, e.Detail
	}
	return v
}
