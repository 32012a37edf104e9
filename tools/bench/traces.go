package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// The scenario traces: the share of traces that is kept, and the most that it can cost.
const (
	tracesStem    = "traces"
	tracesRatio   = 0.1
	mostForTraces = 1.03
)

// collector is an OpenTelemetry collector that counts spans and discards them. It runs in the bench's own process,
// whose CPU is in no row.
type collector struct {
	server *http.Server
	url    string
	spans  atomic.Int64
}

func startCollector() (*collector, error) {
	c := &collector{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c.url = "http://" + listener.Addr().String()
	c.server = &http.Server{Handler: http.HandlerFunc(c.take), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	n, err := countSpans(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.spans.Add(n)
}

// countSpans reads a compressed export.
func countSpans(body io.Reader) (n int64, err error) {
	plain, err := gzip.NewReader(body)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		return 0, err
	}
	var data tracepb.TracesData
	if err := proto.Unmarshal(text, &data); err != nil {
		return 0, err
	}
	for _, resource := range data.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			n += int64(len(scope.Spans))
		}
	}
	return n, nil
}

// tracedEngine measures what traces cost: two systems of which one exports, in turns. Each pair of measurements is
// compared by R, which a machine that is busy with other things moves least, and the median of the pairs counts.
func tracedEngine(ctx context.Context, o *options, rep *report) error {
	c, err := startCollector()
	if err != nil {
		return err
	}
	defer func() { _ = c.server.Close() }()
	traced := *o
	traced.env = append(slices.Clone(o.env), "POSTHORN_TRACES_URL="+c.url, "POSTHORN_TRACES_RATIO="+strconv.FormatFloat(tracesRatio, 'g', -1, 64))
	return with(ctx, o, tracesStem, func(plain *system) error {
		plainGroup, err := plain.healthy(ctx)
		if err != nil {
			return err
		}
		return with(ctx, &traced, tracesStem, func(s *system) error {
			g, err := s.healthy(ctx)
			if err != nil {
				return err
			}
			return c.pairs(ctx, rep, []side{{plain, plainGroup, without}, {s, g, fmt.Sprintf(", %g of the traces exported", tracesRatio)}})
		})
	})
}

// pairs measures both sides in turns, the one that begins by turns too: whichever is second finds a warmer machine.
func (c *collector) pairs(ctx context.Context, rep *report, sides []side) error {
	o := sides[0].system.opts
	repeats := make([][]result, len(sides))
	l := load{events: 2 * o.events, connections: o.connections} // short runs differ by more than traces cost
	var against []float64
	for i := range o.repeats {
		for n := range sides {
			j := (i + n) % len(sides)
			r, err := turn(ctx, l, j, sides)
			if err != nil {
				return err
			}
			o.say("%s%s, %d of %d: %s", oneToOne, sides[j].suffix, i+1, o.repeats, r)
			repeats[j] = append(repeats[j], r)
		}
		l.from += l.events
		against = append(against, repeats[1][i].Ratio/repeats[0][i].Ratio)
		o.say("%s: pair %d: %.3f of R without; %d spans so far", tracesStem, i+1, against[i], c.spans.Load())
	}
	for j, side := range sides {
		rep.add(tracesStem, oneToOne+side.suffix, median(repeats[j]))
	}
	rep.Rows[len(rep.Rows)-1].Against = middle(against)
	// An event that is kept has a span of its own and one for its attempt.
	if want := int64(tracesRatio * float64(l.from)); c.spans.Load() < want {
		return fmt.Errorf("traces: %d spans of %d events arrived, fewer than %d: %w", c.spans.Load(), l.from, want, errUntraced)
	}
	return nil
}

var errUntraced = errors.New("the measurement was not about traces")
