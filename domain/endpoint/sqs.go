package endpoint

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// SQSConnection says to which queue of Amazon SQS, or of a server that is compatible with it, an endpoint sends.
type SQSConnection struct {
	QueueURL    string `json:"queue_url"`
	Region      string `json:"region"`
	AccessKeyID string `json:"access_key_id"`
	SecretKey   string `json:"secret_access_key"`
}

// Format keeps the secret key out of logs whatever the verb.
func (q SQSConnection) Format(f fmt.State, _ rune) {
	_, _ = f.Write([]byte(q.QueueURL + " redacted"))
}

// Place is where the connection leads.
func (q *SQSConnection) Place() string { return q.QueueURL + " " + q.Region }

// Clone is a copy.
func (q *SQSConnection) Clone() Connection {
	c := *q
	return &c
}

// FIFO reports whether the queue keeps an order and knows what it had before: its name says so.
func (q *SQSConnection) FIFO() bool { return strings.HasSuffix(q.QueueURL, ".fifo") }

// Keep keeps the stored secret key where none is given, as long as it signs for the same queue and access key.
func (q *SQSConnection) Keep(given *SQSConnection) error {
	if given.SecretKey != "" && given.SecretKey != Marker {
		return nil
	}
	if given.SecretKey = ""; q == nil {
		return nil // Check asks for one
	}
	if given.QueueURL != q.QueueURL || given.Region != q.Region || given.AccessKeyID != q.AccessKeyID {
		return fault.InvalidField("sqs.secret_access_key", "sqs_secret_needed",
			"Send the secret access key again. The stored one is kept only if the queue URL, region, and access key id don't change.")
	}
	given.SecretKey = q.SecretKey
	return nil
}

func readSQS(text []byte) (Connection, error) {
	var q SQSConnection
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, err
	}
	return &q, nil
}

var (
	// the account, which some compatible servers name otherwise, and the queue
	queuePath = regexp.MustCompile(`^/([A-Za-z0-9_-]{1,80}/){1,3}[A-Za-z0-9_-]{1,80}(\.fifo)?$`)
	awsRegion = regexp.MustCompile(`^[a-z]{2,}(-[a-z0-9]+){1,4}$`)
	awsHost   = regexp.MustCompile(`^(?:sqs\.([a-z0-9-]+)|([a-z0-9-]+)\.queue)\.amazonaws\.com(?:\.cn)?$`)
	awsKeyID  = regexp.MustCompile(`^[!-~]{1,128}$`)
	awsSecret = regexp.MustCompile(`^[!-~]{1,256}$`)
)

// sqs checks a queue's connection. A message that the queue has is proof enough that the endpoint wants it.
func (c *collector) sqs(s *Settings, policy egress.Policy) {
	s.Verification = "simple"
	q, ok := s.Connection.(*SQSConnection)
	if !ok || q == nil {
		c.refuse("sqs", "sqs_missing", "An sqs endpoint needs sqs.queue_url, sqs.access_key_id, and sqs.secret_access_key.")
		return
	}
	known := false
	if u, err := url.Parse(q.QueueURL); err != nil || !queuePath.MatchString(u.EscapedPath()) || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		c.refuse("sqs.queue_url", "sqs_queue_malformed", "Copy the URL of the queue, such as https://sqs.eu-west-1.amazonaws.com/123456789012/webhooks.")
	} else if u, err = policy.CheckURL(q.QueueURL); err != nil {
		c.refuse("sqs.queue_url", "endpoint_url_refused", err.Error())
	} else {
		q.QueueURL, known = u.String(), true
		if m := awsHost.FindStringSubmatch(u.Hostname()); m != nil && q.Region == "" {
			q.Region = m[1] + m[2]
		}
	}
	if (known || q.Region != "") && !awsRegion.MatchString(q.Region) || len(q.Region) > 32 {
		c.refuse("sqs.region", "sqs_region_malformed", "The region is a name such as eu-west-1. It can be left out if the queue URL contains it.")
	}
	if !awsKeyID.MatchString(q.AccessKeyID) {
		c.refuse("sqs.access_key_id", "sqs_credentials_malformed", "An access key id has 1 to 128 printable ASCII characters without spaces.")
	}
	if !awsSecret.MatchString(q.SecretKey) {
		c.refuse("sqs.secret_access_key", "sqs_credentials_malformed", "A secret access key has 1 to 256 printable ASCII characters without spaces.")
	}
	s.URL = q.QueueURL
}

// setSQS changes an endpoint's connection. A stored secret key never signs for another queue.
func setSQS(s *Settings, raw json.RawMessage) error {
	before, _ := s.Connection.(*SQSConnection)
	after := &SQSConnection{}
	if before != nil {
		*after = *before
		after.SecretKey = ""
	}
	given := struct {
		QueueURL    *string `json:"queue_url"`
		Region      *string `json:"region"`
		AccessKeyID *string `json:"access_key_id"`
		SecretKey   *string `json:"secret_access_key"`
	}{&after.QueueURL, &after.Region, &after.AccessKeyID, &after.SecretKey}
	if err := s.readConnection(SQS, "sqs_unwanted", raw, &given); err != nil {
		return err
	}
	for _, text := range []*string{&after.QueueURL, &after.Region, &after.AccessKeyID, &after.SecretKey} {
		*text = strings.TrimSpace(*text)
	}
	if before != nil && after.Region == "" {
		after.Region = before.Region
	}
	s.Connection = after
	return before.Keep(after)
}

// showSQS is the connection without the secret key.
func showSQS(s Settings) any {
	q, ok := s.Connection.(*SQSConnection)
	if !ok {
		return nil
	}
	return map[string]any{"queue_url": q.QueueURL, "region": q.Region, "access_key_id": q.AccessKeyID}
}
