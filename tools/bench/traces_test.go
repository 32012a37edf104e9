package main

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func TestTheCollectorCountsTheSpansOfAnExport(t *testing.T) {
	t.Parallel()
	c, err := startCollector()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.server.Close() }()
	spans := []*tracepb.Span{{Name: "posthorn.emit"}, {Name: "posthorn.attempt"}}
	scopes := []*tracepb.ScopeSpans{{Spans: spans}, {Spans: spans[:1]}}
	plain, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: scopes}}})
	if err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	z := gzip.NewWriter(&body)
	_, _ = z.Write(plain)
	_ = z.Close()
	for text, want := range map[string]int{body.String(): http.StatusOK, "not an export": http.StatusBadRequest} {
		res, err := http.Post(c.url, "application/x-protobuf", bytes.NewReader([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%q: answered %d, want %d", text, res.StatusCode, want)
		}
	}
	if n := c.spans.Load(); n != 3 {
		t.Errorf("counted %d spans, want 3", n)
	}
}

func TestTracesAreHeldToThePairsAndNotToTheMedians(t *testing.T) {
	t.Parallel()
	for against, held := range map[float64]bool{1.02: true, 1.05: false} {
		rep := &report{}
		rep.add(tracesStem, oneToOne+without, result{Ratio: 3})
		rep.add(tracesStem, oneToOne+", 0.1 of the traces exported", result{Ratio: 4})
		rep.Rows[1].Against = against
		rep.assess()
		if p := rep.Promises[0]; p.Got != against || p.Met != held {
			t.Errorf("%g: %+v, want held %t", against, p, held)
		}
	}
}
