package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/compare"
	"posthorn/domain/delivery"
	"posthorn/domain/diagnosis"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// attemptsShown bounds the attempts on a page. Only a delivery that was probed for long has as many.
const attemptsShown = 50

// othersShown is how many deliveries of the same event are read.
const othersShown = 50

// deliveryData is the data of a delivery's page.
type deliveryData struct {
	deliveries.State
	attempts []sql.Attempt // oldest first
	endpoint sql.Endpoint
	event    sql.Event // without data if it is no longer kept
	others   []deliveries.State
	settings endpoint.Settings
	payloads bool // the actor can read them
}

func (a *dashboard) readDeliveryData(c *handlers.Call, deliveryID id.UUID) (k deliveryData, err error) {
	err = c.Tx(func(q *db.Tx) error {
		if k.State, err = deliveries.Read(c.Ctx(), q, c.Actor.Tenant, deliveryID); err != nil {
			return err
		}
		if k.attempts, err = deliveries.Attempts(c.Ctx(), q, k.Delivery, attemptsShown+1); err != nil {
			return err
		}
		if k.endpoint, err = q.AnyEndpoint(c.Ctx(), sql.AnyEndpointParams{
			TenantID: c.Actor.Tenant,
			ID:       k.EndpointID,
		}); err != nil {
			return err
		}
		if k.event, err = events.ReadRow(c.Ctx(), q, c.Actor.Tenant, k.EventID); err != nil &&
			!fault.Is(err, fault.ErrNotFound.Code) {
			return err
		}
		if k.payloads, err = a.readsPayloads(c, q); err != nil {
			return err
		}
		if k.payloads {
			if k.settings, err = endpoints.OpenSettings(k.endpoint, a.Keys); err != nil {
				return err
			}
		}
		same, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, deliveries.ListOptions{
			Event:    &k.EventID,
			Endpoint: &k.EndpointID, Most: othersShown,
		})
		for _, d := range same.Rows {
			if d.ID != deliveryID {
				k.others = append(k.others, d)
			}
		}
		return err
	})
	return k, err
}

// readsPayloads reports whether the actor sees requests and responses.
func (a *dashboard) readsPayloads(c *handlers.Call, q *db.Tx) (bool, error) {
	if c.Actor.Role.May(access.ReadPayloads) {
		return true, nil
	}
	t, err := q.GetTenant(c.Ctx(), c.Actor.Tenant)
	return c.Actor.Role.MayReadPayloads(access.ViewersReadPayloads(t.Settings)), err
}

func (a *dashboard) showDelivery(c *handlers.Call) error {
	v, err := a.deliveryView(c)
	if err != nil {
		return err
	}
	if err := a.neighbors(c, &v); err != nil {
		return err
	}
	v.Shell = c.Shell(v.Row.Type, "deliveries")
	return c.Render(http.StatusOK, pages.Delivery(v))
}

// neighbors are the deliveries before and after one, to the same endpoint.
func (a *dashboard) neighbors(c *handlers.Call, v *pages.DeliveryView) error {
	u, err := id.Delivery.Parse(v.Row.ID)
	if err != nil {
		return err
	}
	ep, err := id.Endpoint.Parse(v.Row.Endpoint.ID)
	if err != nil {
		return err
	}
	return c.Tx(func(q *db.Tx) error {
		for _, up := range []bool{false, true} {
			found, err := deliveries.List(c.Ctx(), q, c.Actor.Tenant, deliveries.ListOptions{
				Endpoint: &ep, After: u,
				Ascending: up, Most: 1,
			})
			if err != nil {
				return err
			}
			if len(found.Rows) == 0 {
				continue
			}
			at := v.Root + "/deliveries/" + id.Delivery.Format(found.Rows[0].ID)
			if up {
				v.Newer = at
			} else {
				v.Older = at
			}
		}
		return nil
	})
}

// compared is the difference between the responses to two attempts; nil if one of the attempts does not exist.
func (k deliveryData) compared(chosen *pages.AttemptDetail, with int) *pages.Comparison {
	if chosen == nil || with == chosen.Number {
		return nil
	}
	for _, t := range k.attempts {
		if int(t.Number) == with {
			other := k.attemptDetail(t, "")
			return &pages.Comparison{From: with, To: chosen.Number, Lines: compare.Lines(responseLines(other),
				responseLines(*chosen))}
		}
	}
	return nil
}

// responseLines is a response as text: its status, its headers, and its body, indented if it is JSON.
func responseLines(d pages.AttemptDetail) []string {
	body := d.Answer.Text
	if d.Answer.Nice != "" {
		body = d.Answer.Nice
	}
	if body == "" {
		body = d.Answer.Gone
	}
	text := delivery.AnswerText(d.Status, d.Failure) + "\n" + strings.TrimSpace(d.AnswerHead) + "\n\n" + body
	return strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
}

// endPolling is the status that ends htmx's polling (htmx documentation, "Polling").
const endPolling = 286

// refreshDelivery shows a delivery as it is now, for an open page.
func (a *dashboard) refreshDelivery(c *handlers.Call) error {
	v, err := a.deliveryView(c)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if v.Row.Status.Terminal() {
		status = endPolling
	}
	return c.Render(status, pages.DeliveryParts(v))
}

func (a *dashboard) deliveryView(c *handlers.Call) (pages.DeliveryView, error) {
	deliveryID, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return pages.DeliveryView{}, err
	}
	k, err := a.readDeliveryData(c, deliveryID)
	if err != nil {
		return pages.DeliveryView{}, err
	}
	chosen, _ := strconv.Atoi(c.Query("attempt"))
	v := k.view(c.Actor.May(access.ActOnDeliveries), chosen, a.Now())
	if with, _ := strconv.Atoi(c.Query("with")); with > 0 && k.payloads {
		v.Compared = k.compared(v.Chosen, with)
	}
	v.Root = path(c, "")
	return v, nil
}

func (k deliveryData) view(acts bool, chosen int, now time.Time) pages.DeliveryView {
	labels := map[id.UUID]pages.EndpointLabel{k.endpoint.ID: endpointLabel(k.endpoint)}
	v := pages.DeliveryView{
		Row: deliveryRow(k.State, labels), Settled: orZero(k.SettledAt), Acts: acts,
		Sendable: k.event.Data != nil && k.endpoint.DeletedAt == nil,
	}
	if k.ReplayOf != nil {
		v.ReplayOf = id.Delivery.Format(*k.ReplayOf)
	}
	if k.JobID != nil {
		v.JobID = id.Job.Format(*k.JobID)
	}
	if k.endpoint.DeletedAt == nil {
		v.Endpoint = k.endpoint.Status
	}
	if k.Paused != nil {
		v.PausedSince = orZero(k.Paused.Since)
	}
	if k.Wait != nil {
		v.Wait = *k.Wait
	}
	v.Diagnosis = diagnosis.Of(diagnosis.Facts{
		Kind: endpoint.Kind(k.endpoint.Kind), Status: k.Shown, Reason: k.Reason, Attempts: int(k.Attempts),
		LastStatus: int(k.LastStatus), LastFailure: k.LastFailure,
		AcceptConflict: k.endpoint.AcceptConflict, Timeout: time.Duration(k.endpoint.TimeoutSeconds) * time.Second,
		Wait: k.Wait,
	})
	for _, d := range k.others {
		v.Others = append(v.Others, deliveryRow(d, labels))
	}
	if len(k.attempts) > attemptsShown {
		k.attempts, v.Earlier = k.attempts[len(k.attempts)-attemptsShown:], true
	}
	k.fillAttempts(&v, chosen)
	return v
}

func endpointLabel(e sql.Endpoint) pages.EndpointLabel {
	return pages.EndpointLabel{
		ID: id.Endpoint.Format(e.ID), URL: maskedURL(e.URL), Description: e.Description, Gone: e.DeletedAt != nil,
	}
}

// fillAttempts lists the attempts, newest first, on one scale, and shows the selected one in full. The newest is the
// default.
func (k deliveryData) fillAttempts(v *pages.DeliveryView, chosen int) {
	if len(k.attempts) == 0 {
		return
	}
	at := len(k.attempts) - 1
	var longest time.Duration
	for i, t := range k.attempts {
		longest = max(longest, time.Duration(t.TotalUs)*time.Microsecond)
		if int(t.Number) == chosen {
			at = i
		}
	}
	for i := len(k.attempts) - 1; i >= 0; i-- {
		r := attemptRow(endpoint.Kind(k.endpoint.Kind), k.attempts[i], longest)
		r.Chosen = i == at
		v.Attempts = append(v.Attempts, r)
	}
	detail := k.attemptDetail(k.attempts[at], v.Row.ID)
	v.Chosen = &detail
}

func attemptRow(kind endpoint.Kind, t sql.Attempt, scale time.Duration) pages.AttemptRow {
	us := func(n int32) time.Duration { return time.Duration(n) * time.Microsecond }
	return pages.AttemptRow{
		Number: int(t.Number), At: t.CreatedAt, Late: t.Late, Status: int(t.Status), Failure: t.Failure,
		Total: us(t.TotalUs),
		Phases: components.PhaseProps{
			DNS: us(t.DNSUs), Connect: us(t.ConnectUs), TLS: us(t.TLSUs), Wait: us(t.WaitUs),
			Read: us(t.ReadUs), Scale: scale,
		},
		Title: diagnosis.Attempt(kind, delivery.Result{Failure: t.Failure, Status: int(t.Status)}, 0).Title,
	}
}

// act does an action to a delivery, audits it if anything changed, and redirects to the result. A delivery whose
// state no longer permits the action is shown as it is now.
func (a *dashboard) act(name string, act deliveries.Act, done string) handlers.Handler {
	return func(c *handlers.Call) error {
		deliveryID, err := c.ID(id.Delivery, "delivery_id")
		if err != nil {
			return err
		}
		form, err := c.Form()
		if err != nil {
			return err
		}
		reason, refused := reasonIn(form, "confirm-"+name, false)
		if refused != nil {
			return a.refuseAct(c, *refused)
		}
		act := act
		if act == deliveries.ActReplay && form.Get("again") == "true" {
			act = deliveries.ActReplayAgain
		}
		var d deliveries.State
		changed := false
		err = c.Tx(func(q *db.Tx) error {
			d, changed, err = deliveries.ActOn(c.Ctx(), q, c.Actor.Tenant, deliveryID, act, c.Author().Because(reason))
			return err
		})
		if e := fault.As(err); e != nil && e.Kind == fault.Conflict {
			return a.showStale(c, e)
		}
		if err != nil {
			return err
		}
		if changed {
			c.Flash(done)
		}
		return c.Redirect(path(c, "/deliveries/") + id.Delivery.Format(d.ID))
	}
}

// reasonOf is the reason in a form, and its error.
func reasonOf(form url.Values, must bool) (text, wrong string) {
	text = strings.TrimSpace(form.Get("reason"))
	least := 0
	if must {
		least = 1
	}
	if found := words.ReasonFaults(text, least); len(found) > 0 {
		wrong = found[0].Detail
	}
	return text, wrong
}

// reasonIn is the reason in a dialog's form. refused is what the dialog shows again if the reason is invalid.
func reasonIn(form url.Values, dialog string, must bool) (text string, refused *pages.Refused) {
	text, wrong := reasonOf(form, must)
	if wrong != "" {
		input := components.ReasonInput{Reason: text, Wrong: wrong}
		refused = &pages.Refused{Dialog: dialog, ReasonInput: input}
	}
	return text, refused
}

// refuseAct shows a delivery with the error of the action.
func (a *dashboard) refuseAct(c *handlers.Call, r pages.Refused) error {
	v, err := a.deliveryView(c)
	if err != nil {
		return err
	}
	v.Refused = r
	v.Shell = c.Shell(v.Row.Type, "deliveries")
	return c.Render(http.StatusBadRequest, pages.Delivery(v))
}

func (a *dashboard) showStale(c *handlers.Call, why *fault.Error) error {
	v, err := a.deliveryView(c)
	if err != nil {
		return err
	}
	if v.Stale = why.Detail; why.Code == delivery.CodeReplayed {
		v.Stale = "The delivery was replayed before. To send it once more, select Replay again."
	}
	v.Shell = c.Shell(v.Row.Type, "deliveries")
	return c.Render(http.StatusConflict, pages.Delivery(v))
}

func (a *dashboard) deliveryActions() []handlers.Route {
	one := func(name string, act deliveries.Act, done string) handlers.Route {
		return page("POST", "/deliveries/:delivery_id/"+name, access.ActOnDeliveries, a.act(name, act, done))
	}
	return []handlers.Route{
		one("retry-now", deliveries.ActRetryNow, "Retrying now."),
		one("cancel", deliveries.ActCancel, "Canceled."),
		one("replay", deliveries.ActReplay, "Replayed. This is the new delivery."),
		one("archive", deliveries.ActArchive, "Archived. Lists don't show it."),
		one("unarchive", deliveries.ActUnarchive, "Unarchived. Lists show it again."),
	}
}
