package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/bulk"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// createReplays sends finished deliveries again.
func (a *api) createReplays(c *handlers.Call) error {
	var in ReplaysInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	return a.startOverDeliveries(c, bulk.Replay, in.Filter, bulkOptions{in.Reason, in.Pace, in.Sample, in.DryRun})
}

// actOnDeliveries does one action to many deliveries.
func (a *api) actOnDeliveries(c *handlers.Call) error {
	var in BulkActionInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	kind := bulk.Kind(in.Action)
	switch kind {
	case bulk.RetryNow, bulk.Cancel, bulk.Archive, bulk.Unarchive:
	default:
		return fault.InvalidField("action", "action_unknown", "action must be retry_now, cancel, archive, or unarchive. To send deliveries again, use POST /replays.")
	}
	return a.startOverDeliveries(c, kind, in.Filter, bulkOptions{in.Reason, in.Pace, nil, in.DryRun})
}

// bulkOptions are the common fields of every request for a job.
type bulkOptions struct {
	reason *string
	pace   *int
	sample *bool // of kinds that send
	dryRun *bool
}

func (o bulkOptions) read(wrong *wrongFields, kind bulk.Kind) (n deliveries.NewBulkJob, dryRun bool) {
	n = deliveries.NewBulkJob{Kind: kind}
	set(&n.Reason, o.reason)
	set(&n.Pace, o.pace)
	set(&n.Sample, o.sample)
	*wrong = append(*wrong, bulk.OptionFaults(n.Reason, o.pace)...)
	return n, o.dryRun != nil && *o.dryRun
}

func (a *api) startOverDeliveries(c *handlers.Call, kind bulk.Kind, given BulkFilter, o bulkOptions) error {
	var wrong wrongFields
	n, dryRun := o.read(&wrong, kind)
	var err error
	if n.Filter, err = readBulkFilter(c, &wrong, given); err != nil {
		return err
	}
	if err := wrong.err(); err != nil {
		return err
	}
	if faults := n.Filter.Faults(kind); len(faults) > 0 {
		return fault.InvalidFields(faults)
	}
	return a.startBulk(c, n, dryRun)
}

// readBulkFilter reads a filter for deliveries the way the list of deliveries reads its parameters.
func readBulkFilter(c *handlers.Call, wrong *wrongFields, in BulkFilter) (bulk.Filter, error) {
	f := bulk.Filter{Since: (*time.Time)(in.Since), Until: (*time.Time)(in.Until)}
	if in.Status != nil {
		f.Status = *in.Status
	}
	if in.Endpoint != nil {
		endpointID, err := c.FindEndpoint(*in.Endpoint)
		if err != nil {
			return f, err
		}
		f.Endpoint = id.Endpoint.Format(endpointID)
	}
	readEventFilter(wrong, "filter.", in.Type, in.Channel, &f)
	if in.Archived != nil {
		f.Archived = *in.Archived
	}
	if in.IDs != nil {
		f.IDs = *in.IDs
		if len(f.IDs) < 1 || len(f.IDs) > bulk.MaxIDs {
			wrong.add("filter.ids", "filter_ids_range", fmt.Sprintf("A filter can name 1 to %d deliveries. Create several jobs, or select by status and time.", bulk.MaxIDs))
		}
		if slices.ContainsFunc(f.IDs, func(text string) bool { _, err := id.Delivery.Parse(text); return err != nil }) {
			wrong.id("filter.ids", id.Delivery, "a delivery")
		}
	}
	return f, nil
}

// readEventFilter reads the parts of a filter that concern the event. prefix is their place in the request.
func readEventFilter(wrong *wrongFields, prefix string, eventType, channel *string, f *bulk.Filter) {
	if eventType != nil {
		if f.Type = *eventType; !event.ValidType(f.Type) {
			wrong.add(prefix+"type", event.CodeTypeMalformed, "type must be one complete event type, such as order.completed.")
		}
	}
	if channel != nil {
		if f.Channel = *channel; !event.ValidChannel(f.Channel) {
			wrong.add(prefix+"channel", event.CodeChannelMalformed, fmt.Sprintf("A channel can have 1 to %d letters, digits, and the characters . _ - : / @", event.MaxName))
		}
	}
}

// startBulk creates a job, or responds with an estimate.
func (a *api) startBulk(c *handlers.Call, n deliveries.NewBulkJob, dryRun bool) error {
	var job show.Job
	var estimate deliveries.Estimate
	err := c.Tx(func(q *db.Tx) (err error) {
		if dryRun {
			estimate, err = deliveries.EstimateBulk(c.Ctx(), q, c.Actor.Tenant, n)
			return err
		}
		job, err = deliveries.StartBulkJob(c.Ctx(), q, c.Actor.Tenant, c.Author(), n)
		return err
	})
	if err != nil {
		return err
	}
	if !dryRun {
		return c.Answer(http.StatusAccepted, bulkJobView(job))
	}
	return c.Answer(http.StatusOK, BulkEstimate{
		DryRun:        true,
		Kind:          BulkKind(n.Kind),
		Expected:      int(estimate.Count),
		ExpectedExact: estimate.Exact,
		Skipped:       skippedView(estimate.Skipped),
	})
}

func (a *api) listBulkJobs(c *handlers.Call) error {
	return list(c, handlers.List{Name: "bulk-jobs"}, ranged(c, deliveries.BulkJobs), bulkJobView)
}

func (a *api) getBulkJob(c *handlers.Call) error {
	return get(c, "job_id", deliveries.ReadBulkJob, bulkJobView)
}

func (a *api) cancelBulkJob(c *handlers.Call) error {
	jobID := c.PathID("job_id")
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Job, error) {
		return deliveries.CancelBulkJob(c.Ctx(), q, c.Actor.Tenant, jobID, c.Author().Because(reason))
	}, bulkJobView)
}

// continueBulkJob sends the rest of a job that sent a sample.
func (a *api) continueBulkJob(c *handlers.Call) error {
	jobID := c.PathID("job_id")
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Job, error) {
		return deliveries.ContinueBulkJob(c.Ctx(), q, c.Actor.Tenant, jobID, c.Author().Because(reason))
	}, bulkJobView)
}

func bulkJobView(j show.Job) BulkJob {
	v := BulkJob{
		ID:            id.Job.Format(j.ID),
		Kind:          BulkKind(j.Kind),
		State:         BulkState(j.State),
		Expected:      int(j.Expected),
		ExpectedExact: j.Exact,
		Done:          int(j.Done),
		Skipped:       skippedView(j.Skipped),
		Pace:          nullable.NewNullNullable[int](),
		Reason:        j.Reason,
		AskedBy:       BulkAuthor{Kind: j.AskedKind, ID: j.AskedBy},
		Failure:       orNullText(j.Failure),
		CreatedAt:     Time(j.CreatedAt),
		StartedAt:     orNullTime(j.StartedAt),
		EndedAt:       orNullTime(j.EndedAt),
		SampleID:      orNullID(id.Delivery, j.SampleID),
		Sample:        nullable.NewNullNullable[Delivery](),
		DecideBy:      orNullTime(j.DecideBy),
		Outcome:       nullable.NewNullNullable[BulkOutcome](),
	}
	if j.Sample != nil {
		v.Sample.Set(encodeDelivery(*j.Sample))
	}
	v.Filter, _ = json.Marshal(struct {
		bulk.Filter
		Since *Time `json:"since,omitempty"`
		Until *Time `json:"until,omitempty"`
	}{j.Filter, (*Time)(j.Filter.Since), (*Time)(j.Filter.Until)})
	if j.Pace > 0 {
		v.Pace = nullable.NewNullableWithValue(j.Pace)
	}
	if o := j.Outcome; o != nil {
		v.Outcome.Set(BulkOutcome{
			Made:      int(o.Made),
			Delivered: int(o.Delivered),
			Failed:    int(o.Failed),
			Canceled:  int(o.Canceled),
			Waiting:   int(o.Waiting),
			Exact:     o.Exact,
		})
	}
	return v
}
