package cli

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"posthorn/client"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
)

type deliveryCommands struct {
	List    deliveryListCommand    `cmd:"" help:"List deliveries, newest first."`
	Get     deliveryGetCommand     `cmd:"" help:"Show a delivery with its attempts."`
	Attempt deliveryAttemptCommand `cmd:"" help:"Show one attempt with the request that it sent."`
	Retry   deliveryRetryCommand   `cmd:"" help:"Send a waiting delivery now."`
	Cancel  deliveryCancelCommand  `cmd:"" help:"Cancel a waiting delivery."`
	Replay  deliveryReplayCommand  `cmd:"" help:"Send a finished delivery's event again, as a new delivery."`
	Share   deliveryShareCommand   `cmd:"" help:"Create a read-only link to a delivery, for the developer of its receiver."`
	Tail    deliveryTailCommand    `cmd:"" help:"Show deliveries as they happen, until Ctrl-C."`
}

// selection are the flags that narrow a list of deliveries.
type selection struct {
	Endpoint string `help:"Only deliveries to this endpoint." placeholder:"EP"`
	Type     string `help:"Only events of this type." placeholder:"TYPE"`
	Channel  string `help:"Only events of this channel." placeholder:"CHANNEL"`
}

func (s selection) params() client.ListDeliveriesParams {
	return client.ListDeliveriesParams{Endpoint: nonEmpty(s.Endpoint), Type: nonEmpty(s.Type), Channel: nonEmpty(s.Channel)}
}

// deliveryList are the flags of a command that lists deliveries.
type deliveryList struct {
	shared
	window
	selection
}

func (c deliveryList) print(ctx context.Context, e *Env, sdk *client.Client, params client.ListDeliveriesParams, empty string) error {
	var err error
	if params.Since, params.Until, err = c.bounds(e); err != nil {
		return err
	}
	params.Limit = c.pageSize()
	list := deliveryColumns
	list.limit, list.empty = c.Limit, empty
	return list.collect(c.shared, e, sdk.Deliveries(ctx, params))
}

var deliveryColumns = listing[client.Delivery]{
	head: []string{"DELIVERY", "STATUS", "TYPE", "ENDPOINT", "ATTEMPTS", "LAST RESPONSE", "CREATED"},
	row: func(d client.Delivery) []string {
		return []string{d.ID, statusOf(d), d.EventType, endpointOf(d), strconv.Itoa(d.AttemptCount), lastOf(d), local(d.CreatedAt)}
	},
}

// statusOf is the status of a delivery as the pages call it: what somebody has to end is on hold.
func statusOf(d client.Delivery) string {
	if w, err := d.Wait.Get(); err == nil && condition.Reason(w.Reason).Holds() {
		return word(delivery.OnHold)
	}
	return word(d.Status)
}

// endpointOf is what the endpoint of a delivery is called. A server of an earlier version tells only its id.
func endpointOf(d client.Delivery) string { return cmp.Or(oneLine(d.EndpointName, 40), d.EndpointID) }

type deliveryListCommand struct {
	deliveryList
	storedDay
	Status   string `placeholder:"STATUS" help:"Only deliveries with this status: ${enum}." enum:",pending,retrying,held,on_hold,delivered,failed,dead_letter,canceled,expired,all_failed" default:""`
	Batch    string `placeholder:"BAT" help:"Only the deliveries that shared this request (bat_...)."`
	WaitsFor string `placeholder:"REASON" help:"Only deliveries that wait for this reason, such as breaker or rate_limit."`
	Archived bool   `help:"Only archived deliveries."`
}

// Run lists deliveries.
func (c deliveryListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	params := c.params()
	params.StoredDay = c.day()
	if c.Status != "" {
		params.Status = new(client.ListDeliveriesParamsStatus(c.Status))
	}
	if c.WaitsFor != "" {
		params.Wait = new(client.WaitReason(c.WaitsFor))
	}
	params.Batch = nonEmpty(c.Batch)
	if c.Archived {
		params.Archived = &c.Archived
	}
	return c.print(ctx, e, sdk, params, "No such deliveries.")
}

// lastOf is the result of the last attempt, in a word.
func lastOf(d client.Delivery) string {
	if failure := optional(d.LastFailure); failure != "" {
		return failure
	}
	return optional(d.LastStatus)
}

// oneDelivery are the flags of a command about one delivery.
type oneDelivery struct {
	shared
	ID string `arg:"" name:"delivery" help:"The delivery's id (dlv_...)."`
}

// ProvideClient explains an id that is not a delivery's.
func (c oneDelivery) ProvideClient(e *Env) (*client.Client, error) {
	if err := wantDelivery(c.ID); err != nil {
		return nil, err
	}
	return c.shared.ProvideClient(e)
}

type deliveryGetCommand struct{ oneDelivery }

// Run shows a delivery.
func (c deliveryGetCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.GetDelivery(ctx, c.ID)).print(c.shared, e, e.delivery)
}

func (e *Env) delivery(d client.DeliveryWithAttempts) {
	e.pairs("Delivery", d.ID, "Status", statusOf(client.Delivery{Status: d.Status, Wait: d.Wait}), "Reason", optional(d.Reason), "Event", d.EventID, "Type", d.EventType,
		"Endpoint", d.EndpointID, "Name", oneLine(d.EndpointName, 200), "Created", local(d.CreatedAt), "Next attempt", optional(d.NextAttemptAt), "Expires", optional(d.ExpiresAt), "Waits for", waitOf(d.Wait), "Finished", optional(d.SettledAt),
		"Archived", optional(d.ArchivedAt), "Dead letter", deadLetter(d.DeadLetter), "Replay of", optional(d.ReplayOf), "Replayed by", optional(d.ReplayedBy), "Replayed", optional(d.ReplayedAt))
	for _, a := range d.Attempts {
		e.printf("\n%s\n", e.paint(dim, fmt.Sprintf("Attempt %d, %s", a.Number, local(a.StartedAt))))
		e.pairs(e.attempt(a)...)
	}
}

func deadLetter(is bool) string {
	if is {
		return "neither replayed nor archived"
	}
	return ""
}

// waitOf is why a delivery waits, or empty.
func waitOf(n client.Nullable[client.DeliveryWait]) string {
	w, err := n.Get()
	if err != nil {
		return ""
	}
	text := word(w.Reason)
	if since := optional(w.Since); since != "" {
		text += ", since " + since
	}
	if until := optional(w.Until); until != "" {
		about := ""
		if w.Approximate {
			about = "about "
		}
		name := "until "
		if w.Reason == client.WaitReasonBreaker {
			name = "next probe "
		}
		text += ", " + name + about + until
	}
	if behind := optional(w.Behind); behind != "" {
		text += ", behind " + behind
	}
	if scope := optional(w.PausedScope); scope != "" {
		text += " (" + scope + ")"
	}
	return text + ". " + w.Detail
}

func (e *Env) attempt(a client.Attempt) []string {
	p := a.Phases
	durations := fmt.Sprintf("%s (dns %s, connect %s, tls %s, wait %s, read %s)", micros(p.TotalUs), micros(p.DNSUs), micros(p.ConnectUs), micros(p.TLSUs), micros(p.WaitUs),
		micros(p.ReadUs))
	late := ""
	if a.Late {
		late = "its result came after the delivery had moved on"
	}
	return []string{
		"  URL", a.URL, "  Response", optional(a.Status), "  Failure", optional(a.Failure), "  Error", oneLine(optional(a.Error), 300),
		"  Duration", durations, "  Late", late, "  Body", oneLine(optional(a.ResponseExcerpt), 500),
	}
}

func micros(us int) string {
	return (time.Duration(us) * time.Microsecond).Round(10 * time.Microsecond).String()
}

type (
	deliveryRetryCommand  struct{ oneDelivery }
	deliveryCancelCommand struct{ oneDelivery }
	deliveryReplayCommand struct {
		oneDelivery
		Reason string `help:"The reason, recorded in the audit log."`
		Again  bool   `help:"Replay it even if it was replayed before."`
	}
	deliveryShareCommand struct {
		oneDelivery
		For time.Duration `help:"How long the link can be opened." default:"24h"`
	}
)

// Run sends a delivery at once.
func (c deliveryRetryCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.RetryDelivery(ctx, c.ID)).print(c.shared, e, func(d client.Delivery) {
		e.printf("%s is sent as soon as its endpoint allows it.\n", d.ID)
	})
}

// Run cancels a delivery.
func (c deliveryCancelCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.CancelDelivery(ctx, c.ID)).print(c.shared, e, func(d client.Delivery) { e.printf("%s is canceled.\n", d.ID) })
}

// Run replays a delivery.
func (c deliveryReplayCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(replayOne(ctx, sdk, c.ID, c.Reason, c.Again)).print(c.shared, e, func(d client.Delivery) {
		e.printf("%s is the new delivery.\n", d.ID)
	})
}

// Run creates a read-only link.
func (c deliveryShareCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	seconds := int(c.For.Seconds())
	return of(sdk.CreateDeliveryShare(ctx, c.ID, client.DeliveryShareInput{ExpiresIn: &seconds})).print(c.shared, e, func(s client.DeliveryShareCreated) {
		e.printf("%s\nWhoever has this link sees the delivery, with the event's data, until %s.\n", s.URL, local(s.ExpiresAt))
	})
}

type testCommand struct {
	one
	EventType string        `help:"The test event's type." default:"endpoint.test"`
	Data      *string       `placeholder:"JSON" help:"The event's data as JSON; @FILE or - for stdin."`
	Wait      time.Duration `help:"How long to wait for the response; 0 doesn't wait." default:"30s"`
}

// Run sends a test event and waits for its result. A response that is no success is exit code 1.
func (c testCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	body := client.TestInput{Type: &c.EventType}
	if c.Data != nil {
		text, err := input(ctx, e, *c.Data, withoutData)
		if err != nil {
			return err
		}
		if err := notJSON(*c.Data, text); err != nil {
			return err
		}
		body.Data = text
	}
	accepted, err := sdk.TestEndpoint(ctx, c.ID, body)
	if err != nil {
		return err
	}
	if c.Wait <= 0 {
		return c.show(e, accepted, func() { e.printf("%s is on its way.\n", accepted.DeliveryID) })
	}
	waiting, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	for {
		d, err := sdk.GetDelivery(ctx, accepted.DeliveryID)
		if err != nil {
			return err
		}
		// The attempt is possibly stored a moment before the status is read.
		if d.Status != client.DeliveryStatusPending {
			if err := c.show(e, d, func() { e.delivery(d) }); err != nil || d.Status == client.DeliveryStatusDelivered {
				return err
			}
			return fail(ExitFailed, "The endpoint did not accept it.")
		}
		if !sleep(waiting, 200*time.Millisecond) {
			return fail(ExitUnavailable, "%s was not sent within %s. It waits for %s `posthorn deliveries get %s` shows it later.", d.ID, c.Wait, waitOf(d.Wait), d.ID)
		}
	}
}
