package endpoint_test

import (
	"fmt"
	"strings"
	"testing"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/transform"
)

// TestBatchesFitTheirEndpoint: what can't be in an array of JSON with one set of headers, or is no request, has none.
func TestBatchesFitTheirEndpoint(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*endpoint.Settings)
		code   string
	}{
		"plain":      {func(*endpoint.Settings) {}, ""},
		"own bounds": {func(s *endpoint.Settings) { s.BatchWait, s.BatchBytes = new(0), new(endpoint.MinBatchBytes) }, ""},
		"one event":  {func(s *endpoint.Settings) { s.BatchEvents = new(1) }, "out_of_range"},
		"long wait":  {func(s *endpoint.Settings) { s.BatchWait = new(60_001) }, "out_of_range"},
		"JSON": {func(s *endpoint.Settings) {
			s.Transformation = &transform.Transformation{Kind: transform.Full, ContentType: "application/x+json; charset=utf-8"}
		}, ""},
		"text": {func(s *endpoint.Settings) {
			s.Transformation = &transform.Transformation{Kind: transform.Full, ContentType: "text/plain"}
		}, "batch_unwanted"},
		"headers": {func(s *endpoint.Settings) {
			s.Transformation = &transform.Transformation{Kind: transform.Full, Headers: map[string]string{"X-Type": "event.type"}}
		}, "batch_unwanted"},
		"another kind":  {func(s *endpoint.Settings) { s.Kind = endpoint.Feed; s.URL = "" }, "batch_unwanted"},
		"a test inbox":  {func(s *endpoint.Settings) { s.Kind = endpoint.Inbox }, ""},
		"without limit": {func(s *endpoint.Settings) { s.BatchEvents, s.BatchWait = nil, new(5) }, ""},
	} {
		s := endpoint.ReadDefaults(50, nil, nil).Settings
		s.URL, s.BatchEvents = "https://hooks.example.com/", new(100)
		c.change(&s)
		_, err := s.Check(egress.Policy{})
		text := fmt.Sprint(fault.As(err))
		if f := fault.As(err); f != nil {
			text = fmt.Sprint(f.Fields)
		}
		if c.code == "" && strings.Contains(text, "batch") || c.code != "" && !strings.Contains(text, c.code) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
