// Package sqstest starts ElasticMQ, which has the API of Amazon SQS, for tests: on this machine alone, with its
// messages in a file, so that they survive a restart.
package sqstest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"posthorn/tools/maven"
)

//go:embed pom.xml
var pom []byte

const patience = 3 * time.Minute // a start is some seconds of computing

// Server is an ElasticMQ.
type Server struct {
	URL string

	dir, jars, address string
	cmd                *exec.Cmd
	ended              chan struct{}
}

// Run starts a server that ends with the test.
func Run(t testing.TB) *Server {
	t.Helper()
	s := &Server{jars: maven.Jars(t, "elasticmq", pom), dir: t.TempDir()}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	_ = l.Close()
	s.URL = "http://" + s.address
	_, port, _ := net.SplitHostPort(s.address)
	config := fmt.Sprintf(`include classpath("application.conf")
node-address { protocol = http, host = "127.0.0.1", port = %[1]s, context-path = "" }
rest-sqs { enabled = true, bind-hostname = "127.0.0.1", bind-port = %[1]s, sqs-limits = strict }
rest-stats { enabled = false }
messages-storage { enabled = true, driver-class-name = "org.h2.Driver", uri = "jdbc:h2:%[2]s", username = "", password = "" }
aws { region = "us-east-1", accountId = "000000000000" }
`, port, s.file("messages"))
	if err := os.WriteFile(s.file("config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	s.Start(t)
	return s
}

func (s *Server) file(name string) string { return filepath.Join(s.dir, name) }

// Start starts a server that was stopped, with its queues and messages, and waits until it listens.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	output, err := os.OpenFile(s.file("output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	s.cmd = exec.Command("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dconfig.file="+s.file("config"),
		"-cp", filepath.Join(s.jars, "*"), "org.elasticmq.server.Main")
	s.cmd.Stdout, s.cmd.Stderr = output, output
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(s.cmd, s.ended)
	for until := time.Now().Add(patience); ; {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-s.ended:
			until = time.Time{}
		case <-time.After(100 * time.Millisecond): // a poll: nothing tells when it listens
		}
		if time.Now().After(until) {
			text, _ := os.ReadFile(s.file("output"))
			t.Fatalf("ElasticMQ does not listen: %v\n%s", err, text)
		}
	}
}

// Stop ends the server as its operators do. Its messages stay.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		s.kill()
	}
}

func (s *Server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.ended
}

// Queue creates a queue and returns its URL. A name that ends with .fifo makes a FIFO queue.
func (s *Server) Queue(t testing.TB, name string, attributes map[string]string) string {
	t.Helper()
	all := map[string]string{}
	for k, v := range attributes {
		all[k] = v
	}
	if filepath.Ext(name) == ".fifo" {
		all["FifoQueue"] = "true"
	}
	var made struct {
		URL string `json:"QueueUrl"`
	}
	s.call(t, "CreateQueue", map[string]any{"QueueName": name, "Attributes": all}, &made)
	return made.URL
}

// Send sends bodies to a queue, ten in a request.
func (s *Server) Send(t testing.TB, queue string, bodies ...string) {
	t.Helper()
	for len(bodies) > 0 {
		n := min(10, len(bodies))
		entries := make([]map[string]any, n)
		for i, body := range bodies[:n] {
			entries[i] = map[string]any{"Id": fmt.Sprint(i), "MessageBody": body}
		}
		s.call(t, "SendMessageBatch", map[string]any{"QueueUrl": queue, "Entries": entries}, &struct{}{})
		bodies = bodies[n:]
	}
}

// Message is a message that was received.
type Message struct {
	ID         string            `json:"MessageId"`
	Body       string            `json:"Body"`
	Handle     string            `json:"ReceiptHandle"`
	System     map[string]string `json:"Attributes"`
	Attributes map[string]struct {
		Type  string `json:"DataType"`
		Value string `json:"StringValue"`
	} `json:"MessageAttributes"`
}

// Messages receives and deletes what a queue has, in the queue's order.
func (s *Server) Messages(t testing.TB, queue string) (all []Message) {
	t.Helper()
	for {
		var got struct{ Messages []Message }
		s.call(t, "ReceiveMessage", map[string]any{
			"QueueUrl":              queue,
			"MaxNumberOfMessages":   10,
			"AttributeNames":        []string{"All"},
			"MessageAttributeNames": []string{"All"},
		}, &got)
		if len(got.Messages) == 0 {
			return all
		}
		entries := make([]map[string]any, len(got.Messages))
		for i, m := range got.Messages {
			entries[i] = map[string]any{"Id": fmt.Sprint(i), "ReceiptHandle": m.Handle}
		}
		s.call(t, "DeleteMessageBatch", map[string]any{"QueueUrl": queue, "Entries": entries}, &struct{}{})
		all = append(all, got.Messages...)
	}
}

// Left is how many messages a queue has, those that were received and not deleted included.
func (s *Server) Left(t testing.TB, queue string) (n int) {
	t.Helper()
	var got struct{ Attributes map[string]string }
	s.call(t, "GetQueueAttributes", map[string]any{"QueueUrl": queue, "AttributeNames": []string{"All"}}, &got)
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"} {
		var part int
		_, _ = fmt.Sscan(got.Attributes[name], &part)
		n += part
	}
	return n
}

func (s *Server) call(t testing.TB, action string, in, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(response.Body)
		t.Fatalf("%s: %s: %s", action, response.Status, text.Bytes())
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		t.Fatal(err)
	}
}
