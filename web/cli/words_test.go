package cli

import (
	"net"
	"net/http"
	"strings"
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
