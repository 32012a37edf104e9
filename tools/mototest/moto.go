// Package mototest starts moto, which has the API of Amazon SQS, for tests: in memory, on this machine alone.
package mototest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"posthorn/tools/need"
)

// Server is a running moto.
type Server struct{ URL string }

// Run starts a server until the test ends.
func Run(t testing.TB) *Server {
	t.Helper()
	program := ""
	for _, place := range []string{"../bin/moto/bin/moto_server", "../../bin/moto/bin/moto_server", "moto_server"} {
		if path, err := exec.LookPath(place); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		need.Missing(t, "moto_server", "`make bin/moto` installs it.")
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command(program, "-H", "127.0.0.1", "-p", port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for until := time.Now().Add(time.Minute); ; {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			return &Server{URL: "http://" + address}
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // a poll: nothing tells when it listens
	}
}

// Queue creates a queue and returns its URL. A name that ends with .fifo makes a FIFO queue.
func (s *Server) Queue(t testing.TB, name string, attributes map[string]string) string {
	t.Helper()
	var made struct {
		URL string `json:"QueueUrl"`
	}
	s.call(t, "CreateQueue", map[string]any{"QueueName": name, "Attributes": attributes}, &made)
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
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", action, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		t.Fatal(err)
	}
}
