package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/deliveries"
	"posthorn/db/queue"
	"posthorn/domain/access"
	"posthorn/domain/compare"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/words"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

// attemptsShown bounds the attempts on a page, and the deliveries of the same event. Only a delivery that was probed
// for long has as many.
const attemptsShown = 50

// readsPayloads reports whether the actor sees requests and responses. What a portal link hides, no setting shows.
func (a *dashboard) readsPayloads(c *handlers.Call, q *db.Tx) (bool, error) {
	if hidden := c.Actor.Portal != nil && !c.Actor.Portal.Parts.Payloads; hidden || c.Actor.Role.May(access.ReadPayloads) {
		return !hidden, nil
	}
	t, err := accounts.FindTenant(c.Ctx(), q, c.Actor.Tenant)
	return c.Actor.Role.MayReadPayloads(t.ViewersReadPayloads()), err
}

func (a *dashboard) showDelivery(c *handlers.Call) error {
	v, err := a.deliveryView(c)
	if err != nil {
		return err
	}
	if _, err := c.TakeOnce(v.Root+"/deliveries/"+id.Delivery.Format(v.ID), &v.NewLink); err != nil {
		return err
	}
	return c.Render(http.StatusOK, pages.Delivery(v))
}

// deliveryView is the page of a delivery. It shows the newest attempt in full, or the one that the address asks for.
func (a *dashboard) deliveryView(c *handlers.Call) (v pages.DeliveryView, err error) {
	deliveryID := c.PathID("delivery_id")
	v.Root, v.Acts = path(c, ""), c.Actor.May(access.ActOnDeliveries)
	var payloads bool
	var sent deliveries.Sent
	err = c.Tx(func(q *db.Tx) error {
		if v.DeliveryDetail, err = deliveries.ReadDetail(c.Ctx(), q, c.Actor.Tenant, deliveryID, attemptsShown); err != nil {
			return err
		}
		if payloads, err = a.readsPayloads(c, q); err != nil || !payloads {
			return err
		}
		if err := a.fillShares(c, q, &v, payloads); err != nil {
			return err
		}
		sent, err = deliveries.ReadSent(c.Ctx(), q, a.Keys, queue.Links{BaseURL: a.BaseURL, Keys: a.Keys}, v.Delivery)
		return err
	})
	if err != nil {
		return v, err
	}
	v.Shell = c.Shell(v.EventType, "deliveries")
	if n := len(v.Attempts); n > 0 {
		chosen := chosenAttempt(v.Attempts, c.Query("attempt"))
		detail := attemptDetail(v.Delivery, chosen, payloads)
		if payloads {
			fillRequest(&detail, sent.Request(chosen), v.Delivery)
		}
		v.Chosen = &detail
	}
	if with, err := strconv.Atoi(c.Query("with")); err == nil && payloads {
		v.Compared = compared(v, with)
	}
	return v, nil
}

// chosenAttempt is the attempt with a number, or else the newest.
func chosenAttempt(attempts []show.Attempt, number string) show.Attempt {
	for _, t := range attempts {
		if strconv.Itoa(t.Number) == number {
			return t
		}
	}
	return attempts[len(attempts)-1]
}

// compared is the difference between the responses to two attempts; nil if one of the attempts does not exist.
func compared(v pages.DeliveryView, with int) *pages.Comparison {
	if v.Chosen == nil || with == v.Chosen.Number {
		return nil
	}
	for _, t := range v.Attempts {
		if t.Number == with {
			lines := compare.Lines(responseLines(attemptDetail(v.Delivery, t, true)), responseLines(*v.Chosen))
			return &pages.Comparison{From: with, To: v.Chosen.Number, Lines: lines}
		}
	}
	return nil
}

// responseLines is a response as text: its status, its headers, and its body, indented if it is JSON.
func responseLines(d pages.AttemptDetail) []string {
	body := d.Response.Text
	if d.Response.Nice != "" {
		body = d.Response.Nice
	}
	if body == "" {
		body = d.Response.Gone
	}
	text := delivery.AnswerText(d.Result.Status, d.Result.Failure) + "\n" + strings.TrimSpace(d.Headers) + "\n\n" + body
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
	if v.Status.Terminal() {
		status = endPolling
	}
	return c.Render(status, pages.DeliveryParts(v))
}

// act does an action to a delivery, audits it if anything changed, and redirects to the result. A delivery whose
// state no longer permits the action is shown as it is now.
func (a *dashboard) act(name string, act deliveries.Act, done string) handlers.Handler {
	return func(c *handlers.Call) error {
		deliveryID := c.PathID("delivery_id")
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
		var d show.Delivery
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
	return c.Render(http.StatusConflict, pages.Delivery(v))
}

func (a *dashboard) deliveryActions() []handlers.Route {
	one := func(name string, act deliveries.Act, done string) handlers.Route {
		return page("POST", "/deliveries/:delivery_id/"+name, access.ActOnDeliveries, a.act(name, act, done))
	}
	return []handlers.Route{
		page("POST", "/deliveries/:delivery_id/share", access.ActOnDeliveries, a.shareDelivery),
		page("POST", "/deliveries/:delivery_id/shares/:share_id/revoke", access.ActOnDeliveries, a.revokeShare),
		one("retry-now", deliveries.ActRetryNow, "Retrying now."),
		one("cancel", deliveries.ActCancel, "Canceled."),
		one("replay", deliveries.ActReplay, "Replayed. This is the new delivery.").Replaying(),
		one("archive", deliveries.ActArchive, "Archived. Lists don't show it."),
		one("unarchive", deliveries.ActUnarchive, "Unarchived. Lists show it again."),
	}
}
