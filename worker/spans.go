package worker

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/trace"
	"posthorn/worker/lanes"
	"posthorn/worker/send"
)

// startSpan starts the span of an attempt if the event's trace is sampled; otherwise it returns nil. A retry links to
// the attempt before it. more is what else the span has from its start.
func (w *Worker) startSpan(j *lanes.Job, to *send.Destination, number int, more ...oteltrace.SpanStartOption) oteltrace.Span {
	if w.tracer == nil || j.Event.Traceparent == nil {
		return nil
	}
	parent, ok := trace.ParseStored(*j.Event.Traceparent)
	if !ok || !parent.Sampled {
		return nil
	}
	state, _ := oteltrace.ParseTraceState(parent.State) // one that its parser rejects is none
	ctx := oteltrace.ContextWithRemoteSpanContext(withSpanID(context.Background(), trace.AttemptSpan(j.DeliveryID,
		number)), sampled(parent.TraceID, parent.SpanID).WithTraceState(state))
	kind, attributes := conventions(to.Kind(), to.Masked)
	options := []oteltrace.SpanStartOption{
		oteltrace.WithSpanKind(kind),
		oteltrace.WithAttributes(attributes...),
		oteltrace.WithAttributes(
			attribute.String("posthorn.tenant.id", id.Tenant.Format(j.TenantID)), attribute.String("posthorn.event.id", j.EventText()),
			attribute.String("posthorn.delivery.id", j.DeliveryText()), attribute.String("posthorn.endpoint.id", id.Endpoint.Format(j.EndpointID)),
			attribute.Int("posthorn.attempt", number), attribute.Bool("posthorn.probe", j.IsProbe), attribute.Bool("posthorn.replay", j.Replay)),
	}
	if number > 1 {
		options = append(options, oteltrace.WithLinks(oteltrace.Link{SpanContext: sampled(parent.TraceID,
			trace.AttemptSpan(j.DeliveryID, number-1))}))
	}
	_, span := w.tracer.Start(ctx, "posthorn.attempt", append(options, more...)...)
	return span
}

// conventions are the attributes that OpenTelemetry's semantic conventions ask for at the start of a client's request
// to the address of an endpoint of a kind, and the span's kind: HTTP, an object in S3, or a message to a broker.
func conventions(of endpoint.Kind, address string) (oteltrace.SpanKind, []attribute.KeyValue) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return oteltrace.SpanKindClient, []attribute.KeyValue{semconv.URLFull(address)}
	}
	if of == endpoint.S3 {
		return oteltrace.SpanKindClient, []attribute.KeyValue{semconv.AWSS3Bucket(u.Host), semconv.URLFull(address)}
	}
	attributes := []attribute.KeyValue{semconv.ServerAddress(u.Hostname())}
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "https":
		port = 443
	case u.Scheme == "http":
		port = 80
	}
	if port > 0 {
		attributes = append(attributes, semconv.ServerPort(port))
	}
	path := strings.TrimPrefix(u.Path, "/")
	switch of {
	case endpoint.RabbitMQ:
		_, name, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
		return oteltrace.SpanKindProducer, append(attributes, messages(semconv.MessagingSystemRabbitMQ, name)...)
	case endpoint.Kafka:
		return oteltrace.SpanKindProducer, append(attributes, messages(semconv.MessagingSystemKafka, path)...)
	case endpoint.SQS:
		queue := messages(semconv.MessagingSystemAWSSQS, path[strings.LastIndexByte(path, '/')+1:])
		return oteltrace.SpanKindProducer, append(append(attributes, queue...), semconv.AWSSQSQueueURL(address))
	}
	return oteltrace.SpanKindClient, append(attributes, semconv.HTTPRequestMethodPost, semconv.URLFull(address))
}

// messages are the attributes of a message that is sent to a destination of a broker.
func messages(system attribute.KeyValue, name string) []attribute.KeyValue {
	return []attribute.KeyValue{
		system,
		semconv.MessagingOperationTypeSend,
		semconv.MessagingOperationName("send"),
		semconv.MessagingDestinationName(name),
	}
}

// endSpan ends the span of an attempt with its result. error.type has few values, for aggregation: the status, or the
// word for the failure. The sentence is the span's description.
func endSpan(span oteltrace.Span, r delivery.Result, a *queue.Attempt, d delivery.Decision) {
	if r.Status != 0 {
		span.SetAttributes(semconv.HTTPResponseStatusCode(r.Status))
	}
	if d.Class != delivery.Success {
		kind := r.Failure.String()
		if kind == "" {
			kind = strconv.Itoa(r.Status)
		}
		span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		span.SetStatus(codes.Error, lastError(r, a).Text)
	}
	span.End()
}

func sampled(traceID [16]byte, spanID [8]byte) oteltrace.SpanContext {
	return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{
		TraceID:    traceID,
		SpanID:     spanID,
		TraceFlags: oteltrace.FlagsSampled,
		Remote:     true,
	})
}

type spanIDKey struct{}

func withSpanID(ctx context.Context, span [8]byte) context.Context {
	return context.WithValue(ctx, spanIDKey{}, span)
}

// SpanIDs generates ids for OpenTelemetry's SDK (trace.IDGenerator). The ids of attempts are derived from the delivery
// and the attempt's number; others are random. They are no secrets, and each event asks for one even where nothing is
// kept, so a fast generator makes them.
type SpanIDs struct{}

// NewIDs returns a random trace id and the id of its first span.
func (g SpanIDs) NewIDs(ctx context.Context) (traceID oteltrace.TraceID, spanID oteltrace.SpanID) {
	binary.NativeEndian.PutUint64(traceID[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(traceID[8:], rand.Uint64())
	return traceID, g.NewSpanID(ctx, traceID)
}

// NewSpanID returns the id of a span.
func (SpanIDs) NewSpanID(ctx context.Context, _ oteltrace.TraceID) (spanID oteltrace.SpanID) {
	if given, ok := ctx.Value(spanIDKey{}).([8]byte); ok {
		return given
	}
	binary.NativeEndian.PutUint64(spanID[:], rand.Uint64())
	return spanID
}
