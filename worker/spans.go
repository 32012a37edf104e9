package worker

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/trace"
	"posthorn/worker/lanes"
)

// startSpan starts the span of an attempt if the event's trace is sampled; otherwise it returns nil. A retry links to
// the attempt before it.
func (w *Worker) startSpan(j *lanes.Job, number int) oteltrace.Span {
	if w.tracer == nil || j.Event.Traceparent == nil {
		return nil
	}
	parent, ok := trace.Parse(*j.Event.Traceparent)
	if !ok || !parent.Sampled {
		return nil
	}
	ctx := oteltrace.ContextWithRemoteSpanContext(withSpanID(context.Background(), trace.AttemptSpan(j.DeliveryID,
		number)), sampled(parent.TraceID, parent.SpanID))
	options := []oteltrace.SpanStartOption{
		oteltrace.WithSpanKind(oteltrace.SpanKindClient), oteltrace.WithAttributes(
			attribute.String("posthorn.tenant.id", id.Tenant.Format(j.TenantID)), attribute.String("posthorn.event.id", j.EventText()),
			attribute.String("posthorn.delivery.id", j.DeliveryText()), attribute.String("posthorn.endpoint.id", id.Endpoint.Format(j.EndpointID)),
			attribute.Int("posthorn.attempt", number), attribute.Bool("posthorn.probe", j.IsProbe), attribute.Bool("posthorn.replay", j.Replay)),
	}
	if number > 1 {
		options = append(options, oteltrace.WithLinks(oteltrace.Link{SpanContext: sampled(parent.TraceID,
			trace.AttemptSpan(j.DeliveryID, number-1))}))
	}
	_, span := w.tracer.Start(ctx, "posthorn.attempt", options...)
	return span
}

// endSpan ends the span of an attempt with its result.
func endSpan(span oteltrace.Span, r delivery.Result, a *queue.Attempt, d delivery.Decision) {
	span.SetAttributes(attribute.String("url.full", a.URL))
	if r.Status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", r.Status))
	}
	if d.Class != delivery.Success {
		text := lastError(r, a).Text
		span.SetAttributes(attribute.String("error.type", text))
		span.SetStatus(codes.Error, text)
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
