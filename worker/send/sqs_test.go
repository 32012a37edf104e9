package send

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

const (
	awsKey    = "AKIDEXAMPLE"
	awsSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

// sqsServer is what Amazon documents of SQS for SendMessage: Signature Version 4, the JSON protocol, the limits of a
// message, and groups and deduplication of FIFO queues.
type sqsServer struct {
	*httptest.Server
	mu    sync.Mutex
	seen  map[string]bool // deduplication ids
	got   []sqsMessage
	fails string // the next response
}

func newSQSServer(t testing.TB) *sqsServer {
	s := &sqsServer{seen: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *sqsServer) to(name string) *endpoint.SQSConnection {
	return &endpoint.SQSConnection{QueueURL: s.URL + "/123456789012/" + name, Region: "eu-west-1", AccessKeyID: awsKey, SecretKey: awsSecret}
}

func (s *sqsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(status int, v map[string]string) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	refuse := func(name, text string) {
		answer(http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.sqs#" + name, "message": text})
	}
	var m sqsMessage
	switch err := json.Unmarshal(body, &m); {
	case r.Method != http.MethodPost || r.URL.Path != "/" || r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" ||
		r.Header.Get("Content-Type") != "application/x-amz-json-1.0" || err != nil:
		refuse("UnknownOperationException", "")
	case r.Header.Get("Authorization") != authorization(r, body):
		refuse("InvalidSignatureException", "The request signature we calculated does not match")
	case s.fails != "":
		refuse(s.fails, "as the test wants it")
	case strings.HasSuffix(m.QueueURL, "/none"):
		refuse("QueueDoesNotExist", "The specified queue does not exist.")
	case m.size() > 1<<20 || strings.HasSuffix(m.QueueURL, "/narrow") && m.size() > 1024:
		refuse("InvalidParameterValue", "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes.")
	case len(m.Attributes) > 10 || strings.HasSuffix(m.QueueURL, ".fifo") != (m.Group != "" && m.Once != ""):
		refuse("InvalidParameterValue", "The attributes or the group are wrong.")
	default:
		if m.Once == "" || !s.seen[m.Once] {
			s.got = append(s.got, m)
		}
		s.seen[m.Once] = true
		answer(http.StatusOK, map[string]string{"MessageId": "5fea7756-0ea4-451a-a703-a558b933e274"})
	}
}

// authorization is the header of Signature Version 4, as Amazon describes it, for the headers that the request names.
func authorization(r *http.Request, body []byte) string {
	mac := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	digest := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	_, names, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	canonical := "POST\n/\n\n"
	for name := range strings.SplitSeq(names, ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		canonical += name + ":" + value + "\n"
	}
	canonical += "\n" + names + "\n" + digest(body)
	at := r.Header.Get("X-Amz-Date")
	if when, err := time.Parse("20060102T150405Z", at); err != nil || time.Since(when).Abs() > 15*time.Minute || !strings.Contains(names, "x-amz-target") {
		return "too old, or without the action"
	}
	scope := at[:8] + "/eu-west-1/sqs/aws4_request"
	key := mac(mac(mac(mac([]byte("AWS4"+awsSecret), at[:8]), "eu-west-1"), "sqs"), "aws4_request")
	signed := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+at+"\n"+scope+"\n"+digest([]byte(canonical))))
	return "AWS4-HMAC-SHA256 Credential=" + awsKey + "/" + scope + ", SignedHeaders=" + names + ", Signature=" + signed
}

func queueDestination(t testing.TB, to *endpoint.SQSConnection) *Destination {
	t.Helper()
	destination := someDestination(t, to.QueueURL)
	destination.kind, destination.to = endpoint.SQS, to
	return destination
}

func TestAQueueGetsWhatAReceiverWouldHaveGot(t *testing.T) {
	t.Parallel()
	server := newSQSServer(t)
	destination := queueDestination(t, server.to("webhooks"))
	for n := range 12 {
		destination.headers = append(destination.headers, signature.Header{Name: fmt.Sprint("X-Team-", n), Value: "payments"})
	}
	s, m := newTestSender(t), someMessage(`{"total":12.50}`)
	for range 2 {
		r, a := s.Deliver(t.Context(), destination, m)
		if r != (delivery.Result{Status: 200}) || a.Error != "" || a.Total == 0 || a.Signature == "" || !strings.Contains(string(a.ResponseExcerpt), `"message_id"`) {
			t.Fatalf("%+v %+v %s", r, a, a.ResponseExcerpt)
		}
	}
	got := server.got[0]
	header := func(name string) string { return got.Attributes[strings.ToLower(name)].Value }
	if len(server.got) != 2 || len(got.Attributes) != 10 || header("webhook-id") != m.EventID || header("content-type") != "application/json" ||
		header("type") != "order.completed" || header("x-team-0") != "payments" || got.Group != "" || got.Once != "" {
		t.Errorf("%d messages, %+v", len(server.got), got)
	}
	secret := signature.NewSecret([32]byte{1})
	if err := (signature.Wire{Format: signature.Standard}).Verify(header, []byte(got.Body), []string{secret}, time.Now(), time.Minute); err != nil {
		t.Errorf("the message does not verify: %v", err)
	}
}

func TestAFIFOQueueGetsGroupsAndEachEventOnce(t *testing.T) {
	t.Parallel()
	server := newSQSServer(t)
	destination, s := queueDestination(t, server.to("webhooks.fifo")), newTestSender(t)
	key, odd := "customer-7", someMessage(`{}`)
	keyed := someMessage(`{}`)
	keyed.Event.Key = &key
	odd.EventID = "my event №7" // of the producer
	for _, m := range []Message{keyed, keyed, odd, odd} {
		if r, a := s.Deliver(t.Context(), destination, m); r.Status != 200 {
			t.Fatalf("%+v %q", r, a.Error)
		}
	}
	if len(server.got) != 2 || server.got[0].Group != key || server.got[0].Once != keyed.EventID || len(server.got[1].Once) != 64 || server.got[1].Group != server.got[1].Once {
		t.Errorf("%+v", server.got)
	}
}

func TestTheReasonForAMessageThatAQueueRejectsIsNamed(t *testing.T) {
	t.Parallel()
	rejected := func(name string) outcome { return outcome{delivery.OfSQS(name), name} }
	for name, c := range map[string]struct {
		queue, fails, data string
		change             func(*endpoint.SQSConnection)
		want               outcome
	}{
		"no such queue":     {queue: "none", want: rejected("QueueDoesNotExist")},
		"another secret":    {change: func(to *endpoint.SQSConnection) { to.SecretKey = "other" }, want: rejected("InvalidSignature")},
		"another region":    {change: func(to *endpoint.SQSConnection) { to.Region = "us-east-1" }, want: rejected("InvalidSignature")},
		"not permitted":     {fails: "AccessDeniedException", want: rejected("AccessDenied")},
		"throttled":         {fails: "RequestThrottled", want: rejected("RequestThrottled")},
		"of tomorrow":       {fails: "SomethingNew", want: rejected("SomethingNew")},
		"more than 1 MiB":   {data: strings.Repeat("a", 1<<20), want: rejected(delivery.TooLargeForSQS)},
		"the queue's limit": {queue: "narrow", data: strings.Repeat("a", 1024), want: rejected(delivery.TooLargeForSQS)},
		"nobody there": {
			change: func(to *endpoint.SQSConnection) { to.QueueURL = "http://127.0.0.1:1025/1/a" },
			want:   outcome{delivery.Result{Failure: delivery.FailConnect}, "connection refused"},
		},
		"a private address": {
			change: func(to *endpoint.SQSConnection) { to.QueueURL = "https://10.1.2.3/1/a" },
			want:   outcome{delivery.Result{Failure: delivery.FailBlocked}, "blocked address"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := newSQSServer(t)
			server.fails = c.fails
			to := server.to("webhooks")
			if c.queue != "" {
				to = server.to(c.queue)
			}
			if c.change != nil {
				c.change(to)
			}
			s, destination := newTestSender(t), queueDestination(t, to)
			r, a := s.Deliver(t.Context(), destination, someMessage(`"`+c.data+`"`))
			c.want.check(t, r, a.Error)
		})
	}
}

// Whatever server listens there, what it says is bounded and named.
func TestAServerThatIsNoQueueIsNamed(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]delivery.Result{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":                        {Failure: delivery.FailProtocol},
		"HTTP/1.1 302 Found\r\nLocation: http://a\r\nContent-Length: 0\r\n\r\n": {Failure: delivery.FailProtocol},
		"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n":                         delivery.OfSQS("ServiceUnavailable"),
		"HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("a", 1<<20):                  {Failure: delivery.FailProtocol},
		"noise": {Failure: delivery.FailProtocol},
		"":      {Failure: delivery.FailReset},
	} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, says)
				_ = conn.Close()
			}
		}()
		to := &endpoint.SQSConnection{QueueURL: "http://" + l.Addr().String() + "/1/a", Region: "eu-west-1", AccessKeyID: "a", SecretKey: "b"}
		if r, a := newTestSender(t).Deliver(t.Context(), queueDestination(t, to), someMessage(`{}`)); r != want || a.Error == "" {
			t.Errorf("%.30q: %+v %q, want %+v", says, r, a.Error, want)
		}
	}
}
