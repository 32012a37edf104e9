package importer

import (
	"context"
	"errors"
	"maps"

	"posthorn/client"
)

// cutOverMark is the name in an endpoint's metadata under which a cut-over keeps how far it has come, so that one that
// breaks off is completed by the next run.
const (
	cutOverMark    = "posthorn.cut_over"
	cutOverStarted = "begun" // events are held here; there it is being disabled
	cutOverDone    = "done"
)

// waits reports whether the cut-over is still to come.
func (m *move) waits() bool { return !m.CutOver.IsZero() && m.Now.Before(m.CutOver) }

// state sets the state in which the endpoint is created, and returns it. Nothing is delivered twice while both senders
// run: before the cut-over the new endpoint is paused and drops events.
func (m *move) state(fields map[string]any, x endpoint, here client.Endpoint) string {
	if mark := here.Metadata[cutOverMark]; mark != "" {
		kept := map[string]string{}
		if there, ok := fields["metadata"].(map[string]string); ok {
			kept = maps.Clone(there)
		}
		kept[cutOverMark] = mark
		fields["metadata"] = kept
	}
	if m.waits() && here.Metadata[cutOverMark] == "" {
		fields["when_held"] = "drop"
	}
	if !m.Verified {
		if x.disabled {
			fields["send_verification"] = false
		}
		return "unverified"
	}
	fields["assume_verified"] = true
	if !x.disabled && m.CutOver.IsZero() {
		return "active"
	}
	fields["paused"] = true
	switch {
	case x.disabled:
		return "paused, as it is there"
	case m.waits():
		return "paused until the cut-over"
	case m.stopped(x, here):
		return "paused until nothing of it is open"
	}
	return "cut over"
}

// errOpen is why an endpoint is not cut over.
const errOpen = Error("It was not cut over, since not all of it was copied. Do what its notes say and run this again, or give --accept-notes.")

// stopped reports whether something of an endpoint has to be done by hand before its cut-over begins.
func (m *move) stopped(x endpoint, here client.Endpoint) bool {
	return len(x.notes) > 0 && !m.Accept && here.Metadata[cutOverMark] == ""
}

// eachHere does something to every endpoint that is here.
func (m *move) eachHere(
	ctx context.Context,
	t tenant,
	there []endpoint,
	here map[string]client.Endpoint,
	out *Result,
	do func(context.Context, tenant, endpoint, client.Endpoint) (bool, error),
) error {
	if len(here) == 0 && m.CutOver.IsZero() {
		return nil // all that exists was created a moment ago, in the state that it is to have
	}
	for _, x := range there {
		e, ok := here[x.external]
		if !ok {
			var err error
			if e, err = m.to.Tenant(t.external).GetEndpoint(ctx, x.external); client.Code(err) == "not_found" {
				continue // it was refused or left out, and the report says why
			} else if err != nil {
				return err
			}
		}
		moved, err := do(ctx, t, x, e)
		if errors.Is(err, errOpen) {
			out.Problems = append(out.Problems, x.external+": "+err.Error())
			continue
		}
		if err != nil {
			return err
		}
		out.CutOver = out.CutOver || moved
	}
	return nil
}

// settle pauses an endpoint that is disabled there or has its cut-over ahead, and makes the cut-over when it is due.
// Events are held from before the other sender stops until this one starts, so that none is lost.
func (m *move) settle(ctx context.Context, t tenant, x endpoint, e client.Endpoint) (moved bool, err error) {
	tenant, mark := m.to.Tenant(t.external), e.Metadata[cutOverMark]
	switch {
	case m.waits() && e.Status == "active" && mark == "", m.CutOver.IsZero() && x.disabled && e.Status == "active" && mark == "":
		_, err = tenant.PauseEndpoint(ctx, e.ID, client.EndpointPauseInput{})
		return false, err
	case m.waits() || m.CutOver.IsZero() || e.Status != "paused":
		return false, nil
	case m.stopped(x, e):
		return false, errOpen
	case mark == "" && x.disabled:
		return false, m.hold(ctx, tenant, e, "") // a person disabled it there: it stays paused here
	case mark == "":
		if err := m.hold(ctx, tenant, e, cutOverStarted); err != nil {
			return false, err
		}
	case mark == cutOverDone:
		return false, nil // a person has paused it since
	}
	if !x.disabled {
		if err := m.from.enable(ctx, t, x.id, false); err != nil {
			return false, err
		}
	}
	if _, err := tenant.ResumeEndpoint(ctx, e.ID, client.ResumeInput{}); err != nil {
		return false, err
	}
	return true, m.hold(ctx, tenant, e, cutOverDone)
}

// takeBack undoes the cut-over of an endpoint. It is enabled there before it is paused here: an event that is emitted
// to both within that moment can arrive twice, and none is lost.
func (m *move) takeBack(ctx context.Context, t tenant, x endpoint, e client.Endpoint) (moved bool, err error) {
	tenant := m.to.Tenant(t.external)
	if e.Metadata[cutOverMark] == "" || m.DryRun {
		return e.Metadata[cutOverMark] != "", nil
	}
	if x.disabled {
		if err := m.from.enable(ctx, t, x.id, true); err != nil {
			return false, err
		}
	}
	if e.Status == "active" {
		if _, err := tenant.PauseEndpoint(ctx, e.ID, client.EndpointPauseInput{}); err != nil {
			return false, err
		}
	}
	metadata := maps.Clone(e.Metadata)
	delete(metadata, cutOverMark)
	_, err = tenant.UpdateEndpoint(ctx, e.ID, client.EndpointPatch{
		WhenHeld: new(client.WhenHeld("drop")),
		Metadata: &metadata,
	})
	return true, err
}

// hold makes an endpoint hold events while it is paused, and records the progress of the cut-over.
func (m *move) hold(ctx context.Context, tenant *client.Client, e client.Endpoint, mark string) error {
	if e.WhenHeld == "hold" && e.Metadata[cutOverMark] == mark {
		return nil
	}
	metadata := maps.Clone(e.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	if mark != "" {
		metadata[cutOverMark] = mark
	}
	_, err := tenant.UpdateEndpoint(ctx, e.ID, client.EndpointPatch{
		WhenHeld: new(client.WhenHeld("hold")),
		Metadata: &metadata,
	})
	return err
}
