package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"posthorn/worker"
)

// tracesGrace is how long a stop waits for spans that were not exported yet.
const tracesGrace = 5 * time.Second

// traces makes spans and exports them. Nil: off.
type traces struct{ provider *sdktrace.TracerProvider }

// newTraces begins to export where the configuration says where to; else it returns nil.
func newTraces(cfg *Config, parts Parts, log *slog.Logger) (*traces, error) {
	if cfg.TracesURL == "" {
		return nil, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces could not be exported", "error", err) }))
	exporter, err := otlptrace.New(context.Background(), newCollector(cfg))
	if err != nil {
		return nil, err
	}
	described, ok := tracesResource(cfg, parts)
	if !ok {
		log.Warn("OTEL_RESOURCE_ATTRIBUTES is ignored: it is not name=value, separated by commas, with other characters percent-encoded")
	}
	return &traces{sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithExportTimeout(10*time.Second), sdktrace.WithBatchTimeout(2*time.Second)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.TracesRatio))),
		sdktrace.WithIDGenerator(worker.SpanIDs{}),
		sdktrace.WithResource(described),
	)}, nil
}

// tracesResource describes this process by OpenTelemetry's semantic conventions. What its variables say comes last and
// wins; attributes that can't be read are left out as a whole, as its specification asks.
func tracesResource(cfg *Config, parts Parts) (described *resource.Resource, ok bool) {
	name := "posthorn-web"
	switch {
	case parts.Web && parts.Worker:
		name = "posthorn"
	case parts.Worker:
		name = "posthorn-worker"
	}
	attributes := []attribute.KeyValue{
		semconv.ServiceName(name),
		semconv.ServiceVersion(buildVersion()),
		semconv.ServiceInstanceID(uuid.NewString()),
	}
	given, ok := resourceAttributes(cfg.ServiceAttributes)
	attributes = append(attributes, given...)
	if cfg.ServiceName != "" {
		attributes = append(attributes, semconv.ServiceName(cfg.ServiceName))
	}
	return resource.NewWithAttributes(semconv.SchemaURL, attributes...), ok
}

// resourceAttributes reads the form of OTEL_RESOURCE_ATTRIBUTES.
func resourceAttributes(text string) (out []attribute.KeyValue, ok bool) {
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !found || name == "" || err != nil {
			return nil, false
		}
		out = append(out, attribute.String(name, value))
	}
	return out, true
}

// tracer is nil where traces are off.
func (t *traces) tracer() oteltrace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer("posthorn")
}

// close exports the remaining spans.
func (t *traces) close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracesGrace)
	defer cancel()
	_ = t.provider.Shutdown(ctx)
}

// collector is the client of the exporter: OTLP over HTTP in binary form, compressed. The exporter's own client would
// link gRPC, which nothing here speaks.
type collector struct {
	url     string
	headers http.Header
	client  *http.Client
}

func newCollector(cfg *Config) *collector {
	headers, _ := tracesHeaders(cfg.TracesHeaders) // checked with the configuration
	headers.Set("Content-Type", "application/x-protobuf")
	headers.Set("Content-Encoding", "gzip")
	headers.Set("User-Agent", "Posthorn/"+buildVersion())
	return &collector{url: tracesURL(cfg.TracesURL), headers: headers, client: &http.Client{Timeout: 10 * time.Second}}
}

// Start and Stop belong to the exporter's interface; there is nothing to open or close.
func (c *collector) Start(context.Context) error { return nil }
func (c *collector) Stop(context.Context) error  { c.client.CloseIdleConnections(); return nil }

// compressors are kept: one takes most of a megabyte. Spans are alike, so the fastest level makes them small enough.
var compressors = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed) // a level that there is
	return z
}}

// UploadTraces sends spans, and tries again as the OTLP specification says: after 429, 502, 503 and 504 and where there
// was no response, with growing waits, until the context ends. TracesData has the same bytes as the request message of
// the collector's service.
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	plain, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	z := compressors.Get().(*gzip.Writer)
	z.Reset(&body)
	_, _ = z.Write(plain) // a buffer takes everything
	_ = z.Close()
	compressors.Put(z)
	for wait := time.Second; ; wait *= 2 {
		retryAfter, err := c.post(ctx, body.Bytes())
		var permanent *permanentError
		if err == nil || errors.As(err, &permanent) {
			return err
		}
		select {
		case <-time.After(max(wait, retryAfter)):
		case <-ctx.Done():
			return err
		}
	}
}

// permanentError is a response after which the same spans are not sent again.
type permanentError struct{ status int }

func (e *permanentError) Error() string { return fmt.Sprintf("the collector responded %d", e.status) }

func (c *collector) post(ctx context.Context, body []byte) (retryAfter time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = c.headers.Clone()
	res, err := c.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	switch {
	case res.StatusCode < 300:
		return 0, nil
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode >= 502 && res.StatusCode <= 504:
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, fmt.Errorf("the collector responded %d", res.StatusCode)
	}
	return 0, &permanentError{res.StatusCode}
}

// tracesURL is where spans go: a URL without a path is a collector's, which takes them at /v1/traces.
func tracesURL(base string) string {
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimRight(base, "/") + "/v1/traces"
	}
	return base
}

// tracesHeaders reads name=value pairs with commas between.
func tracesHeaders(s Secret) (http.Header, bool) {
	h := http.Header{}
	for pair := range strings.SplitSeq(s.Reveal(), ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t:") {
			return h, false
		}
		h.Set(name, strings.TrimSpace(value))
	}
	return h, true
}

func (c *Config) checkTraces(report reporter) {
	if c.TracesURL != "" {
		if u, err := url.Parse(c.TracesURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			report("POSTHORN_TRACES_URL", "is not the URL of a collector. Write it as http://collector:4318; secrets go into POSTHORN_TRACES_HEADERS.")
		}
	}
	if _, ok := tracesHeaders(c.TracesHeaders); !ok {
		report("POSTHORN_TRACES_HEADERS", "can't be read. Write name=value, separated by commas, as Authorization=Bearer abc.")
	}
	if math.IsNaN(c.TracesRatio) || c.TracesRatio < 0 || c.TracesRatio > 1 {
		report("POSTHORN_TRACES_RATIO", "is out of range. Write a number from 0 to 1; 0.1 keeps one trace in ten.")
	}
}
