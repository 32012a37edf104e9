package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/domain/access"
	"posthorn/domain/bulk"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/layout"
	"posthorn/views/pages"
)

func (a *dashboard) bulkRoutes() []handlers.Route {
	return []handlers.Route{
		page("POST", "/deliveries/bulk", access.ActOnDeliveries, a.confirmBulk),
		page("GET", "/bulk-jobs", access.Read, a.listBulkJobs),
		page("POST", "/bulk-jobs", access.ActOnDeliveries, a.startBulk),
		page("GET", "/bulk-jobs/:job_id", access.Read, a.showBulkJob),
		page("GET", "/bulk-jobs/:job_id/live", access.Read, a.refreshBulkJob),
		page("GET", "/bulk-jobs/:job_id/watch", access.Read, a.watchBulkJob),
		own(page("POST", "/bulk-jobs/:job_id/dismiss", access.Read, a.dismissBulkJob)),
		page("POST", "/bulk-jobs/:job_id/cancel", access.ActOnDeliveries, a.decideBulkJob(deliveries.CancelBulkJob, "Job canceled.")),
		page("POST", "/bulk-jobs/:job_id/continue", access.ActOnDeliveries, a.decideBulkJob(deliveries.ContinueBulkJob, "Sending the rest.")),
	}
}

// filterNames are the fields of a form that filter deliveries.
var filterNames = []string{"status", "type", "endpoint", "channel", "since", "until", "wait", "job", "batch", "archived"}

// bulkForm is a submitted action on many deliveries.
type bulkForm struct {
	deliveries.NewBulkJob
	fields map[string][]string // the hidden fields of the confirmation
	back   string              // the list that contained the form
}

var errNoneChosen = fault.InvalidField("id", "filter_ids_range", "No deliveries are selected. Go back and select deliveries in the list.")

var errOfJob = fault.InvalidField("job", "filter_job", "Actions on all results can't be limited to the deliveries of a job. Select the deliveries in the list.")

var errOfBatch = fault.InvalidField("batch", "filter_batch", "Actions on all results can't be limited to the deliveries of a batch. Select the deliveries in the list.")

// errOfWait rejects actions on all deliveries that wait for one reason: a job's filter has no such condition.
var errOfWait = fault.InvalidField("wait", "filter_wait", "Actions on all results can't be limited to a reason for waiting. Select the deliveries in the list.")

// errNoSince rejects missing events without an endpoint or a start.
var errNoSince = fault.InvalidField("since", "field_missing", "Go back and enter the time since which deliveries or events are missing.")

// listsOnly are filters of the list that actions on all results don't have.
var listsOnly = []struct {
	name string
	err  error
}{{"job", errOfJob}, {"batch", errOfBatch}, {"wait", errOfWait}}

// readBulk reads the action and the deliveries: the selected ones, or all results of the filter. The filter is read
// the way the list reads its address.
func (a *dashboard) readBulk(c *handlers.Call, form url.Values) (b bulkForm, err error) {
	b.Kind = bulk.Kind(form.Get("action"))
	if from := form.Get("from"); from != "" && from != components.OtherTime {
		form.Set("since", from)
	} else if from != "" && form.Get("since") == "" {
		return b, errNoSince
	}
	switch b.Kind {
	case bulk.Replay, bulk.RetryNow, bulk.Cancel, bulk.Archive, bulk.Unarchive:
	case bulk.ReplayMissing:
		if form.Get("endpoint") == "" || form.Get("since") == "" || form.Get("all") != "true" {
			return b, errNoSince
		}
	default:
		return b, fault.InvalidField("action", "action_unknown", "action is one of replay, retry_now, cancel, archive, unarchive.")
	}
	filter := formFilter(form)
	b.back = path(c, "/deliveries")
	if len(filter) > 0 {
		b.back += "?" + filter.Encode()
	}
	b.fields = map[string][]string{"action": {string(b.Kind)}}
	if form.Get("all") != "true" {
		b.Filter.IDs = form["id"]
		b.fields["id"] = b.Filter.IDs
		if n := len(b.Filter.IDs); n == 0 || n > bulk.MaxIDs {
			return b, errNoneChosen
		}
		for name := range filter {
			b.fields[name] = filter[name]
		}
		return b, nil
	}
	for _, f := range listsOnly {
		if filter.Get(f.name) != "" {
			return b, f.err
		}
	}
	b.fields["all"] = []string{"true"}
	for name := range filter {
		b.fields[name] = filter[name]
	}
	c.Request.URL.RawQuery = filter.Encode()
	p, err := c.Page(deliveryList)
	if err != nil {
		return b, err
	}
	b.Filter = bulk.Filter{
		Status:   p.Status,
		Type:     p.Type,
		Channel:  p.Channel,
		Since:    orNil(p.Since),
		Until:    orNil(p.Until),
		Archived: p.Archived,
	}
	if !p.Endpoint.IsZero() {
		b.Filter.Endpoint = id.Endpoint.Format(p.Endpoint) // the address may have its external id
	}
	return b, nil
}

// formFilter is the filter of a form, as the list's address has it.
func formFilter(form url.Values) url.Values {
	filter := url.Values{}
	for _, name := range filterNames {
		if v := form.Get(name); v != "" {
			filter.Set(name, handlers.FormTime(v))
		}
	}
	return filter
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// options reads a job's options.
func (b *bulkForm) options(form url.Values) []fault.Field {
	b.Reason = strings.TrimSpace(form.Get("reason"))
	b.Sample = form.Get("sample") == "true"
	var pace *int
	if text := form.Get("pace"); strings.TrimSpace(text) != "" {
		b.Pace = number(text)
		pace = &b.Pace
	}
	return bulk.OptionFaults(b.Reason, pace)
}

// confirmBulk shows how many deliveries the job would change, and changes nothing.
func (a *dashboard) confirmBulk(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	b, err := a.readBulk(c, form)
	if err != nil {
		return err
	}
	return a.showConfirm(c, http.StatusOK, b, nil, form)
}

func (a *dashboard) showConfirm(c *handlers.Call, status int, b bulkForm, wrong map[string]string, form url.Values) error {
	if faults := b.Filter.Faults(b.Kind); b.Kind != bulk.ReplayMissing && len(faults) > 0 {
		return fault.InvalidFields(faults)
	}
	var e deliveries.Estimate
	var filter []pages.Fact
	err := c.Tx(func(q *db.Tx) (err error) {
		if filter, err = a.filterFacts(c, q, b.Filter); err != nil {
			return err
		}
		e, err = deliveries.EstimateBulk(c.Ctx(), q, c.Actor.Tenant, b.NewBulkJob)
		return err
	})
	if err != nil {
		return err
	}
	v := pages.BulkConfirmView{
		Root:    path(c, ""),
		Back:    b.back,
		Kind:    b.Kind,
		Count:   e.Count,
		Exact:   e.Exact,
		Repeats: e.Repeats,
		Skipped: pages.Skips(e.Skipped),
		Filter:  filter,
		Fields:  b.fields,
		Wrong:   wrong,
		Reason: components.FieldProps{
			Name:      "reason",
			Label:     "Reason",
			Optional:  true,
			Hint:      "Recorded in the audit log.",
			Value:     form.Get("reason"),
			Error:     wrong["reason"],
			MaxLength: words.MaxReason,
		},
		Pace: components.FieldProps{
			Name:     "pace",
			Label:    "Pace",
			Optional: true,
			Type:     "number",
			Min:      "1",
			Max:      strconv.Itoa(bulk.MaxPace),
			Unit:     "per second",
			Width:    "short",
			Hint:     "Leave empty to go as fast as the endpoints' own limits allow.",
			Value:    form.Get("pace"),
			Error:    wrong["pace"],
		},
	}
	v.Shell = c.Shell("Confirm", "deliveries")
	return c.Render(status, pages.BulkConfirm(v))
}

// filterFacts describes what a job selects.
func (a *dashboard) filterFacts(c *handlers.Call, q *db.Tx, f bulk.Filter) ([]pages.Fact, error) {
	var out []pages.Fact
	add := func(label, value string) {
		if value != "" {
			out = append(out, pages.Fact{Label: label, Value: value})
		}
	}
	if len(f.IDs) > 0 {
		add("Selected", components.Many(int64(len(f.IDs)), "delivery", "deliveries"))
	}
	add("With status", components.Sentence(f.Status))
	add("Event type", f.Type)
	add("Channel", f.Channel)
	if f.Endpoint != "" {
		endpointID, err := id.Endpoint.Parse(f.Endpoint)
		if err != nil {
			return out, fault.ErrNotFound
		}
		e, err := endpoints.Destination(c.Ctx(), q, c.Actor.Tenant, endpointID)
		if err != nil && !fault.Is(err, fault.ErrNotFound.Code) {
			return out, err
		}
		add("Endpoint", cmp.Or(e.Name(), f.Endpoint))
	}
	if f.Since != nil {
		add("Since", components.Stamp(*f.Since))
	}
	if f.Until != nil {
		add("Until", components.Stamp(*f.Until))
	}
	if f.Archived {
		add("Archived", "yes")
	}
	return out, nil
}

func (a *dashboard) startBulk(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	b, err := a.readBulk(c, form)
	if err != nil {
		return err
	}
	if wrong := b.options(form); len(wrong) > 0 {
		b.Pace = 0
		return a.showConfirm(c, http.StatusBadRequest, b, handlers.WrongFields(fault.InvalidFields(wrong)), form)
	}
	if faults := b.Filter.Faults(b.Kind); b.Kind != bulk.ReplayMissing && len(faults) > 0 {
		return fault.InvalidFields(faults)
	}
	var job show.Job
	err = c.Tx(func(q *db.Tx) error {
		job, err = deliveries.StartBulkJob(c.Ctx(), q, c.Actor.Tenant, c.Author(), b.NewBulkJob)
		return err
	})
	if err != nil {
		return err
	}
	if job.Kind.Sends() {
		c.Watch(job.ID)
	}
	return c.Redirect(path(c, "/bulk-jobs/"+id.Job.Format(job.ID)))
}

func (a *dashboard) listBulkJobs(c *handlers.Call) error {
	p, err := c.Page(handlers.List{Name: "bulk-jobs", Rows: rows, Of: id.Job})
	if err != nil {
		return err
	}
	v := pages.BulkJobsView{Root: path(c, "")}
	err = c.Tx(func(q *db.Tx) error {
		found, err := handlers.ReadPage(p, nil, func(r show.Range) (show.Page[show.Job], error) {
			return deliveries.BulkJobs(c.Ctx(), q, c.Actor.Tenant, r)
		})
		if err != nil {
			return err
		}
		v.Newer, v.Older = found.Newer, found.Older
		v.Rows, err = askers(c, q, found.Rows...)
		return err
	})
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Bulk jobs", "deliveries")
	return c.Render(http.StatusOK, pages.BulkJobs(v))
}

// askers adds the names of those who started jobs.
func askers(c *handlers.Call, q *db.Tx, jobs ...show.Job) (named []pages.BulkJob, err error) {
	var refs []db.AuditRef
	for _, j := range jobs {
		refs = append(refs, db.AuditRef{Tenant: c.Actor.Tenant, Kind: j.AskedKind, ID: j.AskedBy})
	}
	names, err := auditNames(c, q, refs)
	for _, j := range jobs {
		named = append(named, pages.BulkJob{Job: j, AskedName: pages.ActorName(j.AskedKind, names[j.AskedBy])})
	}
	return named, err
}

func (a *dashboard) bulkJobView(c *handlers.Call) (v pages.BulkJobView, err error) {
	jobID := c.PathID("job_id")
	err = c.Tx(func(q *db.Tx) error {
		job, err := deliveries.ReadBulkJob(c.Ctx(), q, c.Actor.Tenant, jobID)
		if err != nil {
			return err
		}
		named, err := askers(c, q, job)
		if err != nil {
			return err
		}
		v = pages.BulkJobView{Root: path(c, ""), Job: named[0], Acts: c.Actor.May(access.ActOnDeliveries)}
		if v.Filter, err = a.filterFacts(c, q, job.Filter); err != nil || job.State != bulk.Sampled || job.Sample == nil {
			return err
		}
		v.Response, err = a.lastResponse(c, q, *job.Sample)
		return err
	})
	return v, err
}

// lastResponse is the newest attempt of a delivery with its response; nil: there was none yet.
func (a *dashboard) lastResponse(c *handlers.Call, q *db.Tx, d show.Delivery) (*pages.AttemptDetail, error) {
	last, err := deliveries.Attempts(c.Ctx(), q, d, 1)
	if err != nil || len(last) == 0 {
		return nil, err
	}
	payloads, err := a.readsPayloads(c, q)
	detail := attemptDetail(d, last[0], payloads)
	return &detail, err
}

func (a *dashboard) showBulkJob(c *handlers.Call) error {
	v, err := a.bulkJobView(c)
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Bulk job", "deliveries")
	return c.Render(http.StatusOK, pages.BulkJobPage(v))
}

func (a *dashboard) refreshBulkJob(c *handlers.Call) error {
	v, err := a.bulkJobView(c)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !v.Live() {
		status = endPolling
	}
	return c.Render(status, pages.BulkJobParts(v))
}

// watchBulkJob shows how far a job is, above every page. Its end is shown once.
func (a *dashboard) watchBulkJob(c *handlers.Call) error {
	job, err := a.readJob(c)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if job.Settled() {
		status = endPolling
		c.Unwatch(job.ID)
	}
	return c.Render(status, layout.JobWatch(path(c, "/bulk-jobs/"+id.Job.Format(job.ID)), job, c.Watches(job.ID)))
}

// dismissBulkJob hides a job's progress and leads back to the page.
func (a *dashboard) dismissBulkJob(c *handlers.Call) error {
	job, err := a.readJob(c)
	if err != nil {
		return err
	}
	c.Unwatch(job.ID)
	back := ""
	if from, err := url.Parse(c.Request.Referer()); err == nil && strings.HasPrefix(from.Path, root(c)+"/") {
		back = from.RequestURI()
	}
	return c.Redirect(handlers.Next(back, root(c)))
}

// readJob is the job that the path names.
func (a *dashboard) readJob(c *handlers.Call) (job show.Job, err error) {
	jobID := c.PathID("job_id")
	err = c.Tx(func(q *db.Tx) error {
		job, err = deliveries.ReadBulkJob(c.Ctx(), q, c.Actor.Tenant, jobID)
		return err
	})
	return job, err
}

// decideBulkJob cancels or continues a job. A job that no longer permits it is shown as it is.
func (a *dashboard) decideBulkJob(decide decision, done string) handlers.Handler {
	return func(c *handlers.Call) error {
		jobID := c.PathID("job_id")
		err := c.Tx(func(q *db.Tx) error {
			_, err := decide(c.Ctx(), q, c.Actor.Tenant, jobID, c.Author())
			return err
		})
		e := fault.As(err)
		if e != nil && e.Kind == fault.Conflict {
			v, err := a.bulkJobView(c)
			if err != nil {
				return err
			}
			v.Stale, v.Shell = e.Detail, c.Shell("Bulk job", "deliveries")
			return c.Render(http.StatusConflict, pages.BulkJobPage(v))
		}
		if err != nil {
			return err
		}
		return c.Done(path(c, "/bulk-jobs/"+id.Job.Format(jobID)), done)
	}
}

// decision is what somebody decides about a job that is not over.
type decision func(ctx context.Context, q *db.Tx, tenant, job id.UUID, by db.Author) (show.Job, error)
