package show

import (
	"cmp"
	"net/http"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

// Attempt is one attempt of a delivery as every surface shows it.
type Attempt struct {
	ID        id.UUID
	Number    int
	Late      bool // its result arrived after the delivery had finished
	Result    delivery.Result
	Error     string // of the worker; empty: none
	StartedAt time.Time
	URL       string // without its secrets
	Format    string // as stored: see signature.ParseWire
	Signature string
	Phases    Phases
	Headers   string // of the response
	Body      []byte // the start of the response's body; nil: there was no response
	Diagnosis diagnosis.Diagnosis
}

// Phases are how long the parts of an attempt lasted.
type Phases struct {
	DNS, Connect, TLS, Wait, Read, Total time.Duration
}

// NewAttempt completes what is stored about an attempt to an endpoint.
func NewAttempt(a Attempt, to Destination) Attempt {
	a.Diagnosis = diagnosis.Attempt(to.Kind, a.Result, to.Timeout, a.response())
	return a
}

func (a Attempt) response() diagnosis.Response {
	return diagnosis.Response{URL: a.URL, Headers: a.Headers, Body: a.Body}
}

// Reached reports whether the attempt sent a request.
func (a Attempt) Reached() bool {
	switch a.Result.Failure {
	case delivery.FailDNS, delivery.FailConnect, delivery.FailTLS, delivery.FailBlocked, delivery.FailInternal, delivery.FailToken, delivery.FailProxy:
		return false
	}
	return true
}

// SignedAt is the time of the attempt as its format signs it.
func (a Attempt) SignedAt() time.Time {
	if signature.ParseWire(a.Format, "").Format == signature.BodyHex {
		return a.StartedAt.UTC().Truncate(time.Millisecond)
	}
	return a.StartedAt.UTC().Truncate(time.Second)
}

// Request is the request of an attempt, rebuilt by the rules that rendered it.
type Request struct {
	Headers []signature.Header // with secrets masked
	Key     string             // of a Kafka record; empty: none
	Method  string             // of HTTP; empty: POST
	Body    []byte             // nil: the event's data is no longer kept
	Batch   *signature.Batch   // the request had the bodies of other events, too, which Body has not; nil: it had not
	Changed bool               // the endpoint was changed after the attempt: custom headers and the prefix are shown as they are now
}

// HTTPMethod is the method of the request.
func (r Request) HTTPMethod() string { return cmp.Or(r.Method, http.MethodPost) }
