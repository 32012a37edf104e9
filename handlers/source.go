package handlers

import (
	"context"
	"time"

	"posthorn/domain/fault"
	"posthorn/domain/show"
	"posthorn/domain/source"
)

// Sampler receives one message of a source without acknowledging it; nil: there is none. If the queue can't be read,
// the error is a *fault.Error with the code source_unreachable.
type Sampler interface {
	Sample(ctx context.Context, of source.Settings) (*source.Message, error)
}

// TrySource shows what the mapping of a source makes of a message, or of one that is received for it where m is nil.
func TrySource(ctx context.Context, from Sampler, of source.Settings, m *source.Message, now time.Time) (show.SourceTry, error) {
	mapping, err := source.Compile(of.Mapping)
	if err != nil {
		return show.SourceTry{}, err
	}
	if m == nil {
		m, err = from.Sample(ctx, of)
		if fault.Is(err, "source_unreachable") {
			return show.SourceTry{Problem: err}, nil
		}
		if err != nil || m == nil {
			return show.SourceTry{}, err
		}
	}
	try := show.SourceTry{Message: m}
	if _, large := m.Encode(); large {
		try.Problem = fault.New(fault.Invalid, source.CodeTooLarge, source.LargeDetail)
		return try, nil
	}
	body, e, err := mapping.Event(*m, now)
	if try.Problem = err; err == nil {
		try.Event, try.Body = &e, body
	}
	return try, nil
}
