package delivery

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
)

// BatchLimit is how many events a batch has at most that contains one with so many attempts, of the endpoint's own
// most. Each attempt halves it: an event that makes its receiver reject or lose whole batches is alone in the end,
// whoever owns its lane, and the others are delivered without it.
func BatchLimit(most, attempts int) int { return max(1, most>>min(max(attempts, 0), 16)) }

// splits reports whether a response to several events is possibly about one of them alone: a client error that names
// no state of the receiver.
func splits(p Policy, r Result) bool {
	if r.Failure != FailNone || r.Status < 400 || r.Status > 499 {
		return false
	}
	return !slices.Contains([]int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusGone,
		http.StatusTooEarly, http.StatusTooManyRequests,
	}, r.Status) && (r.Status != http.StatusConflict || !p.AcceptConflict)
}

// DecideInBatch is Decide for one of several events in a request. Where the response is possibly about one of them, all
// are sent again immediately, in smaller batches, without using up their schedules.
func DecideInBatch(p Policy, attempt, events int, r Result, random float64) Decision {
	if events > 1 && splits(p, r) {
		return Decision{Status: Retrying, Repeat: true, Class: Classify(r, p.AcceptConflict)}
	}
	return Decide(p, attempt, r, random)
}

// MaxResults bounds the body of a response with results, in bytes.
const MaxResults = 256 << 10

// ErrResults says that the results of a batch can't be read.
var ErrResults = errors.New(`the response 207 has no results: its body is {"results": [{"id": "...", "status": 500}]}`)

// ReadResults reads the body of a 207 (Multi-Status): the status of each event that it lists, by the event's id as the
// batch has it. Events that it doesn't list are delivered.
func ReadResults(body []byte) (map[string]int, error) {
	var given struct {
		Results *[]struct {
			ID     string `json:"id"`
			Status int    `json:"status"`
		} `json:"results"`
	}
	if err := json.Unmarshal(body, &given); err != nil || given.Results == nil {
		return nil, ErrResults
	}
	results := make(map[string]int, len(*given.Results))
	for _, r := range *given.Results {
		if r.ID == "" || r.Status < 100 || r.Status > 599 || r.Status == http.StatusMultiStatus {
			return nil, ErrResults
		}
		results[r.ID] = r.Status
	}
	return results, nil
}
