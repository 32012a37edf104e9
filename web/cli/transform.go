package cli

import (
	"context"
	"fmt"

	"posthorn/client"
)

// transformCommand sets an endpoint's transformation, or tries one.
type transformCommand struct {
	one
	Preset      string            `placeholder:"NAME" help:"For a well-known receiver, such as slack, teams, pagerduty, or cloudevents."`
	Expression  *string           `placeholder:"CEL" help:"What the endpoint receives: @FILE, - for stdin, or the expression itself."`
	Variable    map[string]string `placeholder:"NAME=VALUE" mapsep:"none" help:"A value that expressions read as vars.NAME; *** keeps the stored one. Repeat the flag for more."`
	ContentType string            `placeholder:"TYPE" help:"Content type of the request."`
	Method      string            `placeholder:"METHOD" enum:",POST,PUT,PATCH" default:"" help:"Method of the request: ${enum}."`
	Remove      bool              `help:"Send events as the format has them again."`
	Save        bool              `help:"Save it. Without the flag it is only tried on past events."`
	Event       string            `placeholder:"EVENT" help:"Try it on one event; by default on the latest."`
	Limit       int               `placeholder:"N" default:"10" help:"Try it on so many of the latest events, 1 to 50."`
}

// Run tries a transformation on past events, and saves it if that was asked for.
func (c transformCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	given, err := c.given(ctx, e)
	if err != nil {
		return err
	}
	if c.Save && given == nil && !c.Remove {
		return fail(ExitUsage, "There is nothing to save. Give --preset, --expression, or --remove.")
	}
	if c.Save {
		var patch client.EndpointPatch
		if patch.Transformation.SetNull(); given != nil {
			patch.Transformation.Set(*given)
		}
		return of(sdk.UpdateEndpoint(ctx, c.ID, patch)).print(c.shared, e, func(v client.Endpoint) {
			Fprintf(e.Stdout, "Saved. It applies to events emitted from now on, and releases the deliveries of %s that waited for it.\n", v.ID)
		})
	}
	in := client.TransformationTryInput{Limit: &c.Limit}
	if c.Event != "" {
		in.EventID = &c.Event
	}
	if given != nil {
		in.Transformation.Set(*given)
	} else if c.Remove {
		in.Transformation.SetNull()
	}
	tried, err := sdk.TryTransformation(ctx, c.ID, in)
	if err := of(tried, err).print(c.shared, e, func(v client.TransformationTry) {
		for _, r := range v.Results {
			Fprintf(e.Stdout, "%s  %s\n", r.EventID, r.EventType)
			if p, err := r.Problem.Get(); err == nil {
				Fprintf(e.Stdout, "  failed: %s\n", problemText(p))
				continue
			}
			Fprintf(e.Stdout, "  %s %s\n", r.Method, r.ContentType)
			for _, h := range r.Headers {
				Fprintf(e.Stdout, "  %s: %s\n", h.Name, h.Value)
			}
			Fprintf(e.Stdout, "  %s\n", optional(r.Body))
		}
		if len(v.Results) == 0 {
			Fprintf(e.Stdout, "There are no past events to try it on.\n")
		}
	}); err != nil {
		return err
	}
	if tried.Failed > 0 {
		return fail(ExitFailed, "It can't be applied to %d of %s.", tried.Failed, plural(len(tried.Results), "event", "events"))
	}
	return nil
}

func (c transformCommand) given(ctx context.Context, e *Env) (*client.Transformation, error) {
	if c.Remove {
		if c.Preset != "" || c.Expression != nil {
			return nil, fail(ExitUsage, "--remove and a transformation exclude each other.")
		}
		return nil, nil
	}
	if c.Preset == "" && c.Expression == nil {
		if c.ContentType != "" || c.Method != "" || len(c.Variable) > 0 {
			return nil, fail(ExitUsage, "Give --preset or --expression, too.")
		}
		return nil, nil
	}
	t := &client.Transformation{}
	if c.Expression != nil {
		text, err := input(ctx, e, *c.Expression, nothing)
		if err != nil {
			return nil, err
		}
		t.Expression, t.Kind = new(string(text)), new(client.TransformationKind("cel"))
	}
	if c.Preset != "" {
		t.Preset = new(client.TransformationPreset(c.Preset))
	}
	if c.ContentType != "" {
		t.ContentType = &c.ContentType
	}
	if c.Method != "" {
		t.Method = new(client.TransformationMethod(c.Method))
	}
	if len(c.Variable) > 0 {
		t.Variables = &c.Variable
	}
	return t, nil
}

func problemText(p client.TransformationProblem) string {
	where := "the expression"
	if header, err := p.Header.Get(); err == nil {
		where = "the header " + header
	}
	if line, err := p.Line.Get(); err == nil {
		column, _ := p.Column.Get()
		return fmt.Sprintf("%s at line %d, column %d: %s", where, line, column, p.Detail)
	}
	return where + ": " + p.Detail
}
