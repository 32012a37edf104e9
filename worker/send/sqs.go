package send

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// The limits of SQS.
const (
	sqsMaxMessage    = 1 << 20 // bytes of the body and the attributes: their names, types, and values
	sqsMaxAttributes = 10
	sqsMaxID         = 128      // characters of a group's and a deduplication's id
	sqsMaxAnswer     = 64 << 10 // bytes read
)

// sqsTransport sends messages to queues of Amazon SQS, by its JSON protocol.
type sqsTransport struct{ awsClient }

func newSQSTransport(g *guard) *sqsTransport { return &sqsTransport{newAWSClient(g)} }

func (q *sqsTransport) configure(s endpoint.Settings, _ *egress.Proxy) (any, error) {
	to, ok := s.Connection.(*endpoint.SQSConnection)
	if !ok || to == nil {
		return nil, errors.New("the endpoint has no SQS connection")
	}
	return to, nil
}

func (q *sqsTransport) deliver(ctx context.Context, t *Destination, p *request, a *queue.Attempt) delivery.Result {
	return q.write(ctx, t, p).record(a)
}

func (q *sqsTransport) verify(ctx context.Context, t *Destination, p *request, _ challenge) (status int, detail string, verified bool) {
	return q.write(ctx, t, p).verified("queue")
}

func (q *sqsTransport) write(ctx context.Context, t *Destination, p *request) said {
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	to := t.to.(*endpoint.SQSConnection)
	ph := &phases{began: began, plain: strings.HasPrefix(to.QueueURL, "http://")}
	return q.send(context.WithValue(bounded, phasesKey{}, ph), to, sqsMessageOf(t, p, to)).timed(ctx, ph)
}

// sqsMessage is the input of the action SendMessage.
type sqsMessage struct {
	QueueURL   string                  `json:"QueueUrl"`
	Body       string                  `json:"MessageBody"`
	Attributes map[string]sqsAttribute `json:"MessageAttributes"`
	Group      string                  `json:"MessageGroupId,omitempty"`
	Once       string                  `json:"MessageDeduplicationId,omitempty"`
}

type sqsAttribute struct {
	Type  string `json:"DataType"`
	Value string `json:"StringValue"`
}

// sqsMessageOf converts a message. A queue permits ten attributes: those that a receiver needs come first.
func sqsMessageOf(t *Destination, p *request, to *endpoint.SQSConnection) sqsMessage {
	m := sqsMessage{QueueURL: to.QueueURL, Body: string(p.body), Attributes: make(map[string]sqsAttribute, sqsMaxAttributes)}
	first := []signature.Header{{Name: "content-type", Value: p.contentType}, {Name: "type", Value: p.message.Type}}
	for _, h := range slices.Concat(p.headers, first, t.headers, p.made) {
		if len(m.Attributes) < sqsMaxAttributes && h.Value != "" {
			m.Attributes[strings.ToLower(h.Name)] = sqsAttribute{"String", h.Value}
		}
	}
	if to.FIFO() {
		m.Once = sqsID(p.message.EventID)
		if m.Group = m.Once; p.key != "" {
			m.Group = sqsID(p.key)
		}
	}
	return m
}

// sqsID is a text as the id of a group or of a deduplication. One with other characters than SQS permits, or too long,
// is replaced by its digest.
func sqsID(text string) string {
	if text != "" && len(text) <= sqsMaxID && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (m sqsMessage) size() int {
	n := len(m.Body)
	for name, a := range m.Attributes {
		n += len(name) + len(a.Type) + len(a.Value)
	}
	return n
}

// send calls the action SendMessage.
func (q *sqsTransport) send(ctx context.Context, to *endpoint.SQSConnection, m sqsMessage) said {
	switch {
	case m.size() > sqsMaxMessage:
		return sqsRejected(delivery.TooLargeForSQS, "the body and the attributes have more than 1 MiB")
	case !utf8.ValidString(m.Body):
		return sqsRejected("InvalidMessageContents", "the body is not UTF-8")
	}
	status, text, err := q.call(ctx, to, "SendMessage", m, sqsMaxAnswer)
	switch {
	case errors.Is(err, errUnusable):
		return unusable(time.Now())
	case err != nil:
		return awsFailed(ctx, err)
	}
	return sqsSaid(status, text)
}

// call calls an action and reads at most so many bytes of the response.
func (q *sqsTransport) call(ctx context.Context, to *endpoint.SQSConnection, action string, in any, most int64) (status int, text []byte, err error) {
	u, err := url.Parse(to.QueueURL)
	if err != nil {
		return 0, nil, errUnusable
	}
	body, err := json.Marshal(in)
	if err != nil {
		return 0, nil, errUnusable
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.Scheme+"://"+u.Host+"/", bytes.NewReader(body))
	if err != nil {
		return 0, nil, errUnusable
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	r.Header.Set("User-Agent", signature.UserAgent)
	status, _, text, err = q.do(ctx, r, body, awsService{"sqs", to.Region, to.AccessKeyID, to.SecretKey}, most)
	return status, text, err
}

// sqsSaid reads a response of SQS.
func sqsSaid(status int, text []byte) said {
	var answer struct {
		ID       string `json:"MessageId"`
		Sequence string `json:"SequenceNumber"`
		Type     string `json:"__type"`
		Detail   string `json:"message"` // JSON's names are matched whatever their case
	}
	broken := json.Unmarshal(text, &answer) != nil
	name := strings.TrimSuffix(answer.Type[strings.Index(answer.Type, "#")+1:], "Exception")
	switch {
	case status == http.StatusOK && answer.ID != "":
		kept := map[string]string{"message_id": answer.ID}
		if answer.Sequence != "" {
			kept["sequence_number"] = answer.Sequence
		}
		return said{result: delivery.OfSQS(""), excerpt: excerpt(kept)}
	case status < 400 || broken && status < 500:
		return said{result: delivery.Result{Failure: delivery.FailProtocol}, text: "the server does not use the JSON protocol of SQS"}
	case status == http.StatusTooManyRequests:
		name = "Throttling"
	case name == "" || status >= 500 || len(name) > 40:
		name = "ServiceUnavailable"
	case name == "InvalidParameterValue" && strings.Contains(answer.Detail, "shorter than"):
		name = delivery.TooLargeForSQS // the queue's own limit
	}
	return sqsRejected(name, answer.Detail)
}

func sqsRejected(name, description string) said {
	return said{
		result:  delivery.OfSQS(name),
		text:    "the queue returned " + name,
		excerpt: excerpt(map[string]string{"error": name, "description": description}),
	}
}
