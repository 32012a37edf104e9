package home

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Passage is what a home says about a request that it passes on to another. It is signed for this request alone.
type Passage struct {
	From   string `json:"f"`
	To     string `json:"t"`
	At     int64  `json:"a"` // Unix seconds
	Hops   int    `json:"h"` // how often the request has been passed on, this time included
	Client string `json:"c"` // the address of the client, without a port
	Key    string `json:"k,omitempty"`
	Scopes string `json:"s,omitempty"` // of the platform key that the home has admitted, space between
	Nonce  uint64 `json:"n,omitempty"` // a random number, so that the passage is used once
	Body   string `json:"b,omitempty"` // the SHA-256 of the body in base64; empty: there is no body
}

// MaxHops is how often a request is passed on: to the home that its key names, from there to the home of its tenant,
// and from there to where that tenant has just moved.
const MaxHops = 3

// passageLife is how old a signature can be, and how far clocks of two homes can differ, in seconds.
const passageLife = 60

// PassageLife is the time from the first moment at which a passage is accepted to the last: clocks can differ both
// ways.
const PassageLife = 2 * passageLife * time.Second

// errPassage says that a request claims to come from a home and does not, or that its signature is too old.
var errPassage = errors.New("a signature of a home that is wrong or too old")

// Sign makes the header of a request that goes to a home: of its method and its URI, as they are sent.
func (p Passage) Sign(secret, method, uri string) string {
	text, _ := json.Marshal(p) // never fails: strings and numbers
	payload := base64.RawURLEncoding.EncodeToString(text)
	return payload + "." + base64.RawURLEncoding.EncodeToString(tag(secret, payload, method, uri))
}

// ReadPassage is what a header says that a home signed for this request.
func ReadPassage(header, secret, self, method, uri string, now time.Time) (p Passage, err error) {
	payload, signature, _ := strings.Cut(header, ".")
	given, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !hmac.Equal(given, tag(secret, payload, method, uri)) {
		return p, errPassage
	}
	text, err := base64.RawURLEncoding.Strict().DecodeString(payload)
	if err != nil || json.Unmarshal(text, &p) != nil {
		return Passage{}, errPassage
	}
	if age := now.Unix() - p.At; age > passageLife || age < -passageLife || p.To != self || p.Hops < 1 {
		return Passage{}, errPassage
	}
	return p, nil
}

func tag(secret, payload, method, uri string) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	for _, part := range []string{"posthorn home v1", payload, method, uri} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return h.Sum(nil)
}
