package worker

import (
	"context"
	"math/rand/v2"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"posthorn/db/queue"
	"posthorn/db/sql"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/worker/lanes"
	"posthorn/worker/send"
)

// followers reads what is next of the keys of heads, as many as a request of their endpoint can have.
func (w *Worker) followers(ctx context.Context, plan lanes.Plan, heads []sql.ReadLanesRow) (map[int64][]lanes.Row, []sql.ReadLanesRow, error) {
	keys := map[id.UUID]int{}
	for i := range heads {
		if heads[i].OrderKey != "" {
			keys[heads[i].EndpointID]++
		}
	}
	var p sql.ReadFollowersParams
	of := map[lanes.Key]int64{}
	for i := range heads {
		h := &heads[i]
		most := plan.Follow[h.EndpointID] / max(keys[h.EndpointID], 1)
		if h.OrderKey == "" || most == 0 {
			continue
		}
		p.Endpoints = append(p.Endpoints, h.EndpointID)
		p.Keys = append(p.Keys, h.OrderKey)
		p.Heads = append(p.Heads, h.Seq)
		p.Limits = append(p.Limits, int32(most))
		of[lanes.Key{Endpoint: h.EndpointID, Key: h.OrderKey}] = h.Seq
	}
	if len(p.Heads) == 0 {
		return nil, nil, nil
	}
	rows, err := queue.ReadFollowers(ctx, w.db, p)
	if err != nil {
		return nil, nil, err
	}
	after := map[int64][]lanes.Row{}
	for _, r := range rows {
		seq := of[lanes.Key{Endpoint: r.EndpointID, Key: r.OrderKey}]
		after[seq] = append(after[seq], lanes.Row(r))
	}
	return after, rows, nil
}

// performBatch sends the deliveries of one request, decides about each, gives the outcomes to the recorder, and returns
// the delivery that starts next.
func (w *Worker) performBatch(first *lanes.Job, s *lanes.Settings) (next *lanes.Job) {
	var left []*lanes.Job
	began := time.Now()
	jobs, sent := w.sendBatch(first, s, began)
	kept := 0
	for i, j := range jobs {
		if sent[i].Left {
			left = append(left, j)
			continue
		}
		jobs[kept], sent[kept] = j, sent[i]
		kept++
	}
	jobs, sent = jobs[:kept], sent[:kept]
	requested := 0
	for _, one := range sent {
		if !one.Own && !one.Result.Failure.NotTried() {
			requested++
		}
	}
	outcomes, of := make([]lanes.Outcome, kept), 0
	for i, j := range jobs {
		attempt := int(j.Attempts) + 1 - int(j.Probes)
		decision := delivery.DecideInBatch(s.Policy, attempt, requested, sent[i].Result, rand.Float64())
		span := w.startSpan(j, s.Destination, int(j.Attempts)+1, oteltrace.WithTimestamp(began))
		outcomes[i] = w.outcomeOf(j, span, sent[i].Result, sent[i].Attempt, decision)
		// One delivery that arrived shows that the endpoint works; one that was not tried shows nothing.
		if outcomes[of].Result.Failure.NotTried() || outcomes[of].Decision.Class != delivery.Success && decision.Class == delivery.Success {
			of = i
		}
	}
	w.noteProxy(s.Destination.ProxyOwner, sent[of].Result, sent[of].Attempt.Error)
	if len(left) > 0 {
		w.dispatch.PutBack(left)
	}
	then, decisions := w.dispatch.FinishBatch(jobs, outcomes, of, time.Now())
	retried := map[string]bool{}
	for i, j := range jobs {
		r := resultOf(j, decisions[i], sent[i].Result, sent[i].Attempt, s)
		if i == 0 {
			r.health, r.wait, r.assess = then.Change, then.Wait, then.Assess
		}
		if j.OrderKey != "" && !decisions[i].Status.Terminal() {
			r.outcome.Behind = retried[j.OrderKey]
			retried[j.OrderKey] = true
		}
		w.results <- r
	}
	return then.Next
}

// sendBatch sends what has not expired.
func (w *Worker) sendBatch(first *lanes.Job, s *lanes.Settings, now time.Time) (jobs []*lanes.Job, sent []send.Sent) {
	jobs = append(append(make([]*lanes.Job, 0, len(first.Rest)+1), first), first.Rest...)
	first.Rest = nil
	sent = make([]send.Sent, len(jobs))
	messages, at := make([]send.Message, 0, len(jobs)), make([]int, 0, len(jobs))
	for i, j := range jobs {
		if j.ExpiresAt != nil && !now.Before(*j.ExpiresAt) {
			sent[i] = send.Sent{Result: delivery.Result{Failure: delivery.FailExpired}, Attempt: &queue.Attempt{}}
			continue
		}
		messages, at = append(messages, messageOf(j)), append(at, i)
	}
	if len(messages) > 0 {
		for i, one := range w.sender.DeliverBatch(w.sending, s.Destination, messages) {
			sent[at[i]] = one
		}
	}
	return jobs, sent
}
