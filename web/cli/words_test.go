package cli

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"posthorn/client"
)

func TestANumberAgreesWithItsNoun(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 tries", 1: "1 try", 2: "2 tries"} {
		if got := plural(n, "try", "tries"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := plural(2, "endpoint"); got != "2 endpoints" {
		t.Error(got)
	}
}

// TestAnEndpointThatIsBeingVerifiedIsNotResumedAgain: a disabled endpoint is verified before it is resumed, and keeps
// the actions of a disabled one until then.
func TestAnEndpointThatIsBeingVerifiedIsNotResumedAgain(t *testing.T) {
	t.Parallel()
	e := client.Endpoint{ID: "ep_1", Condition: client.EndpointCondition{State: "disabled", Actions: []client.EndpointConditionActions{"resume"}}}
	if got := commands(e); len(got) != 1 || got[0] != "posthorn endpoints resume ep_1" {
		t.Errorf("a disabled endpoint: %q", got)
	}
	e.LastVerification = client.Value(client.Verification{State: client.VerificationStatePending})
	if got := commands(e); len(got) != 1 || strings.Contains(got[0], "resume") || !strings.Contains(got[0], "Wait for the verification") {
		t.Errorf("while it is verified: %q", got)
	}
	e.LastVerification = client.Value(client.Verification{State: client.VerificationStateFailed})
	if got := commands(e); len(got) != 1 || got[0] != "posthorn endpoints resume ep_1" {
		t.Errorf("after a verification that failed: %q", got)
	}
}

func TestListenSaysWhyAReceiverDidNotRespond(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	var o outcome
	f := forwarder{command: listenCommand{Forward: "http://" + closed.Addr().String()}, http: &http.Client{Timeout: time.Minute}}
	response := f.send(t.Context(), client.Handout{}, &o)
	if o.Error != "connection refused: is something listening on "+closed.Addr().String()+"?" || *response.Error != o.Error {
		t.Errorf("it says %q", o.Error)
	}
}

// What the API and the machine say of fields and files is said of flags and in sentences.
func TestErrorsNameFlagsAndAreSentences(t *testing.T) {
	t.Parallel()
	refused := &client.Error{Status: 400, Code: "out_of_range", Detail: "timeout_seconds must be from 1 to 30 seconds.", Fields: []client.FieldProblem{
		{Field: "timeout_seconds", Detail: "timeout_seconds must be from 1 to 30 seconds."},
		{Field: "retry_policy.delays", Detail: "retry_policy.delays has at most 20 entries."},
	}}
	line, code, ok := Explain(withFlags(refused))
	if !ok || code != ExitUsage || !strings.Contains(line, "--timeout must be") || !strings.Contains(line, "--retry-delays has") || strings.Contains(line, "_seconds") || strings.Contains(line, "policy.") {
		t.Errorf("it says %q", line)
	}
	if refused.Fields[0].Field != "timeout_seconds" {
		t.Error("the server's error was changed")
	}
	_, err := os.ReadFile(filepath.Join(t.TempDir(), "none"))
	if got := fileText(err); !strings.HasSuffix(got, "none does not exist.") {
		t.Errorf("a file that is missing: %q", got)
	}
	text := []byte("{\"a\":1,\n  b}")
	if got := jsonText(text, json.Unmarshal(text, &map[string]any{})); !strings.Contains(got, "line 2") {
		t.Errorf("a text that is not JSON: %q", got)
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "connection refused"},
		{http.ErrSchemeMismatch, "it speaks http, and the address says https"},
		{io.EOF, "it closed the connection without a response"},
		{&net.DNSError{IsNotFound: true}, "there is no host of this name"},
	} {
		if got := cause(&url.Error{Op: "Get", URL: "http://127.0.0.1", Err: c.err}); got != c.want {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}

// A delivery that somebody has to free is on hold here, as it is on the pages.
func TestADeliveryIsCalledAsOnThePages(t *testing.T) {
	t.Parallel()
	for reason, want := range map[client.WaitReason]string{"breaker": "on hold", "endpoint_paused": "on hold", "retry": "retrying", "rate_limit": "retrying"} {
		d := client.Delivery{Status: "retrying", Wait: client.Value(client.DeliveryWait{Reason: reason})}
		if got := statusOf(d); got != want {
			t.Errorf("%s: %s", reason, got)
		}
	}
	if got := endpointOf(client.Delivery{EndpointID: "ep_1", EndpointName: "Old CRM"}); got != "Old CRM" {
		t.Errorf("the endpoint is called %s", got)
	}
}
