package emit

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/trace"
)

// ofServer is created once, since each option is an allocation.
var ofServer = oteltrace.WithSpanKind(oteltrace.SpanKindServer)

// startSpans starts a span of each sampled item: from the request until the event is durable. The event is stored with
// the span's context, so its attempts belong to it. Most items are not sampled and cost nothing here.
func (c *Committer) startSpans(ctx context.Context, tenant id.UUID, items []Item) []oteltrace.Span {
	spans := make([]oteltrace.Span, len(items))
	for i := range items {
		m := &items[i]
		parent := ctx
		if m.Trace.Valid() {
			if !m.Trace.Sampled {
				continue // the producer decided against it
			}
			parent = oteltrace.ContextWithRemoteSpanContext(ctx, spanContext(m.Trace))
		}
		_, span := c.tracer.Start(parent, "posthorn.emit", ofServer)
		if !span.IsRecording() {
			continue
		}
		spans[i] = span
		span.SetAttributes(attribute.String("posthorn.tenant.id", id.Tenant.Format(tenant)), attribute.String("posthorn.event.type", m.Emission.Type))
		if own := span.SpanContext(); own.IsSampled() {
			m.Trace = trace.Context{
				TraceID: own.TraceID(),
				SpanID:  own.SpanID(),
				Sampled: true,
				State:   own.TraceState().String(),
			}
		}
	}
	return spans
}

// endSpans records in each span the outcome of its item.
func endSpans(spans []oteltrace.Span, results []Result) {
	for i, span := range spans {
		if span == nil {
			continue
		}
		switch r := results[i]; {
		case r.Err != nil:
			code := "internal"
			if e := fault.As(r.Err); e != nil {
				code = e.Code
			}
			span.SetAttributes(attribute.String("error.type", code))
			span.SetStatus(codes.Error, code)
		default:
			span.SetAttributes(attribute.String("posthorn.event.id", id.Event.Format(r.ID)), attribute.Int("posthorn.deliveries", r.Deliveries))
			if r.Duplicate {
				span.SetAttributes(attribute.Bool("posthorn.duplicate", true))
			}
		}
		span.End()
	}
}

func spanContext(c trace.Context) oteltrace.SpanContext {
	config := oteltrace.SpanContextConfig{TraceID: c.TraceID, SpanID: c.SpanID, Remote: true}
	config.TraceState, _ = oteltrace.ParseTraceState(c.State) // one that its parser rejects is none
	if c.Sampled {
		config.TraceFlags = oteltrace.FlagsSampled
	}
	return oteltrace.NewSpanContext(config)
}
