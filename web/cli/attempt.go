package cli

import (
	"context"
	"strconv"
	"strings"

	"posthorn/client"
)

type deliveryAttemptCommand struct {
	oneDelivery
	Attempt string `arg:"" optional:"" help:"The attempt's id (att_...) or its number; the last one where none is given."`
}

// Run shows one attempt with the request that it sent.
func (c deliveryAttemptCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	attempt := c.Attempt
	if !strings.HasPrefix(attempt, "att_") {
		var err error
		if attempt, err = c.numbered(ctx, sdk); err != nil {
			return err
		}
	}
	return of(sdk.GetAttempt(ctx, c.ID, attempt)).print(c.shared, e, e.attemptWithRequest)
}

// numbered is the id of the attempt with the number that was given, or of the last one.
func (c deliveryAttemptCommand) numbered(ctx context.Context, sdk *client.Client) (string, error) {
	number, err := strconv.Atoi(c.Attempt)
	if c.Attempt != "" && err != nil {
		return "", fail(ExitUsage, "%q is no attempt: give its number, or its id (att_...).", c.Attempt)
	}
	d, err := sdk.GetDelivery(ctx, c.ID)
	if err != nil {
		return "", err
	}
	last, best := "", 0
	for _, a := range d.Attempts {
		if a.Number == number {
			return a.ID, nil
		}
		if a.Number > best {
			last, best = a.ID, a.Number
		}
	}
	switch {
	case c.Attempt == "" && last != "":
		return last, nil
	case c.Attempt == "":
		return "", fail(ExitNotFound, "%s has no attempt yet.", c.ID)
	}
	return "", fail(ExitNotFound, "%s has no attempt %d; it has %d.", c.ID, number, len(d.Attempts))
}

func (e *Env) attemptWithRequest(a client.AttemptWithRequest) {
	pairs := e.attempt(client.Attempt{
		URL:             a.URL,
		Status:          a.Status,
		Failure:         a.Failure,
		Error:           a.Error,
		Phases:          a.Phases,
		Late:            a.Late,
		ResponseExcerpt: a.ResponseExcerpt,
	})
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = strings.TrimSpace(pairs[i])
	}
	e.pairs(append([]string{"Attempt", a.ID, "Number", strconv.Itoa(a.Number), "Started", local(a.StartedAt)}, pairs...)...)
	if !a.Request.Sent {
		e.printf("\nNothing was sent.\n")
		return
	}
	e.printf("\n%s\n", e.paint(dim, "Request"))
	for _, h := range a.Request.Headers {
		e.printf("%s: %s\n", h.Name, oneLine(h.Value, 500))
	}
	if body, err := a.Request.Body.Get(); err == nil {
		e.printf("\n%s\n", body)
	}
	if headers := optional(a.ResponseHeaders); headers != "" {
		e.printf("\n%s\n%s\n", e.paint(dim, "Response"), headers)
	}
}
