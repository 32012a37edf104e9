package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"posthorn/client"
	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
)

type endpointsCommands struct {
	List          endpointListCommand   `cmd:"" help:"List endpoints."`
	Get           endpointGetCommand    `cmd:"" help:"Show an endpoint."`
	Create        endpointCreateCommand `cmd:"" help:"Create an endpoint. Its secret is shown once."`
	Update        endpointUpdateCommand `cmd:"" help:"Change an endpoint."`
	Delete        endpointDeleteCommand `cmd:"" help:"Delete an endpoint; its queued deliveries are not sent."`
	Pause         endpointPauseCommand  `cmd:"" help:"Send nothing to an endpoint until it is resumed."`
	Mute          endpointMuteCommand   `cmd:"" help:"Mute alerts about an endpoint; it is disabled all the same."`
	Unmute        endpointUnmuteCommand `cmd:"" help:"Send alerts about an endpoint again."`
	Resume        endpointResumeCommand `cmd:"" help:"Deliver again, held deliveries first."`
	Rewind        endpointRewindCommand `cmd:"" help:"Send everything again since a time, in order, and live events behind it."`
	Verify        endpointVerifyCommand `cmd:"" help:"Send the verification again."`
	Test          testCommand           `cmd:"" help:"Send a test event and show the response."`
	Connection    connectionCommand     `cmd:"" name:"test-connection" help:"Connect to the receiver step by step, and show the time and the error of each step."`
	Transform     transformCommand      `cmd:"" help:"Try a transformation on past events, or save it."`
	Certificate   certificateCommand    `cmd:"" name:"certificate-request" help:"Create a certificate signing request, for a client certificate whose key never leaves the server."`
	Failures      failuresCommand       `cmd:"" help:"Group the newest failures of an endpoint by the response."`
	Recover       recoverCommand        `cmd:"" help:"Send deliveries again that failed since a time and were not replayed."`
	ReplayMissing replayMissingCommand  `cmd:"" help:"Send events that match the endpoint and were never sent to it."`
	Secret        struct {
		List   secretListCommand   `cmd:"" help:"List the current secrets, never their text."`
		Rotate secretRotateCommand `cmd:"" help:"Create a new secret. It is shown once."`
		Switch secretSwitchCommand `cmd:"" help:"Sign with the newest secret from now on, in formats with one signature."`
		Check  secretCheckCommand  `cmd:"" help:"Send a request that one secret alone signs, and show whether it is accepted."`
		End    secretEndCommand    `cmd:"" help:"Stop signing with a secret now."`
		Extend secretExtendCommand `cmd:"" help:"Set the end of a secret's overlap."`
	} `cmd:"" help:"Manage an endpoint's signing secrets."`
}

type endpointListCommand struct {
	shared
	Limit     int    `default:"50" help:"Maximum rows; 0 for all." short:"n"`
	Condition string `placeholder:"CONDITION" help:"Only endpoints in this condition: ${enum}." enum:",failing,disabled,suspended,paused_by_operator,waiting_for_worker,asked_to_wait,degraded,unverified,paused,disconnected,active" default:""`
	Kind      string `placeholder:"KIND" help:"Only endpoints of this kind: ${enum}. Listeners are listed with listen alone." enum:",http,kafka,rabbitmq,sqs,s3,inbox,feed,listen" default:""`
	Status    string `placeholder:"STATUS" help:"Only endpoints with this status: ${enum}." enum:",unverified,active,paused,disabled" default:""`
}

// Run lists endpoints.
func (c endpointListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	params := client.ListEndpointsParams{Limit: window{Limit: c.Limit}.pageSize()}
	if c.Status != "" {
		params.Status = new(client.EndpointStatus(c.Status))
	}
	if c.Kind != "" {
		params.Kind = new(client.EndpointKind(c.Kind))
	}
	if c.Condition != "" {
		params.Condition = new(client.EndpointConditionFilter(c.Condition))
	}
	return listing[client.Endpoint]{
		limit: c.Limit,
		empty: "No endpoints. `posthorn endpoints create https://example.com/hooks` makes one.",
		head:  []string{"ENDPOINT", "NAME", "STATE", "EVENT TYPES", "URL"},
		row: func(v client.Endpoint) []string {
			state := shownCondition(v.Condition)
			if muted(v) != "" {
				state += ", muted"
			}
			return []string{v.ID, oneLine(v.Description, 30), state, strings.Join(v.EventTypes, ","), v.URL}
		},
	}.collect(c.shared, e, sdk.Endpoints(ctx, params))
}

// one are the flags of a command about one endpoint.
type one struct {
	shared
	ID string `arg:"" name:"endpoint" help:"The endpoint's id (ep_...)."`
}

type endpointGetCommand struct{ one }

// Run shows an endpoint.
func (c endpointGetCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.GetEndpoint(ctx, c.ID)).print(c.shared, e, e.endpoint)
}

func (e *Env) endpoint(v client.Endpoint) {
	rate := "unlimited"
	if r, err := v.RateLimit.Get(); err == nil {
		rate = strconv.Itoa(r) + "/s"
	}
	breaker := ""
	if !v.CircuitBreaker {
		breaker = "off"
	}
	filter := ""
	if f, err := v.Filter.Get(); err == nil && string(f) != "null" && json.Unmarshal(f, &filter) != nil {
		filter = string(f) // an object: equality on all
	}
	e.pairs("Endpoint", v.ID, "URL", v.URL, "Description", oneLine(v.Description, 200), "Event types", strings.Join(v.EventTypes, ", "), "Channels", strings.Join(v.Channels,
		", "), "Filter", oneLine(filter, 200),
		"Format", string(v.Format), "Retries", string(v.RetryPolicy.Name), "Timeout", strconv.Itoa(v.TimeoutSeconds)+" s",
		"Rate limit", rate, "In flight", strconv.Itoa(v.MaxInFlight), "Ordering", string(v.Ordering), "Circuit breaker", breaker, "Created", local(v.CreatedAt))
	e.printf("\n")
	e.condition(v)
}

// condition shows the endpoint's condition, and what to do about it.
func (e *Env) condition(v client.Endpoint) {
	c := v.Condition
	probe := optional(c.NextProbeAt)
	if probe == "" && c.State == client.EndpointStateFailing {
		probe = "now"
	}
	e.pairs("State", shownCondition(c), "Means", c.Detail, "Cause", optional(c.Cause), "Paused", optional(c.PausedScope), "Since", optional(c.Since),
		"Until", optional(c.Until), "Alerts", muted(v),
		"Next probe", probe, "Disabled on", optional(c.DisableAt), "Last success", optional(v.Health.LastSuccessAt), "Waiting", waiting(c), "Verification", verification(v),
		"What to do", strings.Join(commands(v), "\n"))
}

// muted says until when the endpoint's alerts are muted; empty: they are not.
func muted(v client.Endpoint) string {
	m, err := v.Mute.Get()
	if err != nil {
		return ""
	}
	if until := optional(m.Until); until != "" {
		return "muted until " + until
	}
	return "muted until it recovers"
}

// shownCondition is what the condition is called: its state, or degraded.
func shownCondition(c client.EndpointCondition) string {
	if c.Degraded {
		return condition.Degraded
	}
	return word(c.State)
}

// waiting is how many deliveries wait because of a condition, or empty.
func waiting(c client.EndpointCondition) string {
	switch {
	case c.Waiting == 0:
		return ""
	case !c.WaitingExact:
		return "more than " + strconv.Itoa(c.Waiting)
	}
	return strconv.Itoa(c.Waiting)
}

// verification is the progress of the last verification, for an endpoint that waits for one.
func verification(v client.Endpoint) string {
	last, err := v.LastVerification.Get()
	if err != nil || last.State == client.VerificationStateSucceeded ||
		last.State == client.VerificationStateSuperseded {
		return ""
	}
	text := string(last.State) + ", " + plural(last.Tries, "try", "tries")
	if last.LastDetail != "" {
		text += ": " + oneLine(last.LastDetail, 300)
	}
	return text
}

// commands are what an endpoint's owner can do about its condition. While it is verified, that is to wait.
func commands(v client.Endpoint) []string {
	if last, err := v.LastVerification.Get(); err == nil && last.State == client.VerificationStatePending {
		return []string{"Wait for the verification: posthorn endpoints get " + v.ID}
	}
	var out []string
	for _, a := range v.Condition.Actions {
		if command := condition.Action(a).Command(v.ID); command != "" {
			out = append(out, command)
		}
	}
	return out
}

// settings are the flags for an endpoint's settings: one for each row of the table of settings that has a help text.
type settings struct {
	Rows        kong.Plugins `embed:""`
	RetryPolicy string       `placeholder:"NAME" help:"Retry schedule: ${enum}." enum:",standard,exponential,five,short,quick,daily,seven,once" default:""`
	RetryDelays string       `help:"A custom retry schedule: seconds between attempts, such as 60,300,1800." placeholder:"SECONDS"`
	RetryJitter string       `help:"Jitter of a custom schedule, from 0 to 1." placeholder:"SHARE"`
	RetrySpread string       `placeholder:"HOW" help:"How delays of a custom schedule vary: ${enum}." enum:",both,full" default:""`
	Body        *string      `help:"Any other field, as the API's JSON: @FILE, - for stdin, or the text itself." placeholder:"JSON"`
}

// flagged are the rows of the table that have a flag.
func flagged() []endpoint.Field {
	return slices.DeleteFunc(slices.Clone(endpoint.Fields()), func(f endpoint.Field) bool { return f.Help == "" })
}

// flagName is the name of a setting's flag.
func flagName(f endpoint.Field) string { return cmp.Or(f.Flag, strings.ReplaceAll(f.Name, "_", "-")) }

// newSettings has a field for each flag.
func newSettings() settings {
	var fields []reflect.StructField
	for i, f := range flagged() {
		tag, kind := fmt.Sprintf("name:%q help:%q", flagName(f), f.Help), reflect.TypeFor[string]()
		values := f.Values()
		switch f.Type {
		case endpoint.List:
			kind = reflect.TypeFor[[]string]()
		case endpoint.Pairs:
			kind = reflect.TypeFor[map[string]string]()
			tag += ` placeholder:"NAME=VALUE" mapsep:"none"`
		case endpoint.Switch:
			values = []string{"on", "off"}
			tag += ` placeholder:"on|off"`
		}
		if len(values) > 0 {
			tag += fmt.Sprintf(" enum:%q default:\"\"", ","+strings.Join(values, ","))
		}
		if f.Type != endpoint.Pairs && f.Type != endpoint.Switch && f.Name != "filter" && f.Placeholder != "" {
			tag += fmt.Sprintf(" placeholder:%q", f.Placeholder)
		}
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: kind, Tag: reflect.StructTag(tag)})
	}
	return settings{Rows: kong.Plugins{reflect.New(reflect.StructOf(fields)).Interface()}}
}

// fields are the API's names and values of the flags that were given.
func (s settings) fields(ctx context.Context, e *Env) (map[string]any, error) {
	all := map[string]any{}
	if s.Body != nil {
		text, err := input(ctx, e, *s.Body, nothing)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fail(ExitUsage, "--body %s", jsonText(text, err))
		}
	}
	flags := reflect.ValueOf(s.Rows[0]).Elem()
	for i, f := range flagged() {
		flag := flags.Field(i)
		if flag.Len() == 0 {
			continue
		}
		if f.Type == endpoint.List || f.Type == endpoint.Pairs {
			all[f.Name] = flag.Interface()
			continue
		}
		if _, err := strconv.Atoi(flag.String()); f.Type == endpoint.Number && err != nil && (!f.Optional || flag.String() != "none") {
			return nil, fail(ExitUsage, "--%s is a number. %s", flagName(f), f.Help)
		}
		value, err := f.Parse(flag.String())
		if err != nil {
			return nil, err
		}
		all[f.Name] = value
	}
	return all, s.retries(all)
}

// retries reads a schedule: its name, or custom delays.
func (s settings) retries(all map[string]any) error {
	policy := map[string]any{}
	if s.RetryPolicy != "" {
		policy["name"] = s.RetryPolicy
	}
	if s.RetryDelays != "" {
		var delays []int
		for text := range strings.SplitSeq(s.RetryDelays, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				return fail(ExitUsage, "--retry-delays is a list of seconds with commas between, such as 60,300,1800.")
			}
			delays = append(delays, n)
		}
		policy["delays"] = delays
	}
	if s.RetryJitter != "" {
		jitter, err := strconv.ParseFloat(s.RetryJitter, 64)
		if err != nil {
			return fail(ExitUsage, "--retry-jitter is a number from 0 to 1.")
		}
		policy["jitter"] = jitter
	}
	if s.RetrySpread != "" {
		policy["spread"] = s.RetrySpread
	}
	if len(policy) > 0 {
		all["retry_policy"] = policy
	}
	return nil
}

// typed converts fields into one of the SDK's types. Like the server, it rejects fields that the type does not have.
func typed[T any](fields map[string]any) (T, error) {
	var into T
	text, err := json.Marshal(fields)
	if err != nil {
		return into, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&into); err != nil {
		return into, fail(ExitUsage, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return into, nil
}

type endpointCreateCommand struct {
	shared
	settings
	connection
	access
	URL    string  `arg:"" optional:"" help:"The URL that events are sent to; can also be in --body."`
	Secret *string `placeholder:"@FILE" help:"An existing secret to sign with: @FILE or - for stdin. Default: a new one."`
	Start  string  `placeholder:"START" help:"Where it begins: now, oldest, or a time. Older events come first, in their order."`
	Feed   bool    `help:"Create a feed, which programs read with a token (posthorn feeds)."`
	Later  bool    `name:"verify-later" help:"Send no verification yet: install the secret first, then run posthorn endpoints verify."`
}

// Run creates an endpoint.
func (c endpointCreateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	fields, err := c.fields(ctx, e)
	if err != nil {
		return err
	}
	if c.URL != "" {
		fields["url"] = c.URL
	}
	if err := c.access.set(ctx, e, fields); err != nil {
		return err
	}
	if kind, err := c.connection.set(ctx, e, fields, nil); err != nil {
		return err
	} else if kind != "" {
		if err := c.named(kind, fields); err != nil {
			return err
		}
		fields["kind"] = kind
	}
	if c.Feed {
		fields["kind"] = "feed"
	}
	if c.Start != "" {
		fields["start"] = c.Start
	}
	if c.Secret != nil {
		secret, err := input(ctx, e, *c.Secret, nothing)
		if err != nil {
			return err
		}
		fields["secret"] = string(secret)
	}
	if c.Later {
		fields["send_verification"] = false
	}
	body, err := typed[client.EndpointInput](fields)
	if err != nil {
		return err
	}
	made, err := sdk.CreateEndpoint(ctx, body)
	return of(made, withFlags(err)).print(c.shared, e, func(made client.EndpointCreated) {
		e.pairs("Endpoint", made.ID, "URL", made.URL, "Status", string(made.Status), "Secret", made.Secret, "Public key", optional(made.PublicKey))
		next := "The verification is being sent; `posthorn endpoints get %s` shows how it went."
		if c.Feed {
			next = "Create a consumer: `posthorn feeds create %s NAME`."
		} else if c.Later {
			next = "When your receiver has it, run `posthorn endpoints verify %s`."
		}
		e.notef("The secret is shown only once. "+next+"\n", made.ID)
	})
}

type endpointUpdateCommand struct {
	one
	settings
	connection
	access
	URL string `help:"The new URL; it is verified again."`
}

// Run changes an endpoint.
func (c endpointUpdateCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	fields, err := c.fields(ctx, e)
	if err != nil {
		return err
	}
	if c.URL != "" {
		fields["url"] = c.URL
	}
	if err := c.access.set(ctx, e, fields); err != nil {
		return err
	}
	_, err = c.connection.set(ctx, e, fields, func() (string, error) {
		present, err := sdk.GetEndpoint(ctx, c.ID)
		if err != nil {
			return "", err
		}
		return string(present.Kind), nil
	})
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		return fail(ExitUsage, "Say what to change, as --event-types order.*; --help lists the flags.")
	}
	body, err := typed[client.EndpointPatch](fields)
	if err != nil {
		return err
	}
	changed, err := sdk.UpdateEndpoint(ctx, c.ID, body)
	return of(changed, withFlags(err)).print(c.shared, e, e.endpoint)
}

type endpointDeleteCommand struct{ one }

// Run deletes an endpoint.
func (c endpointDeleteCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	if err := sdk.DeleteEndpoint(ctx, c.ID); err != nil {
		return err
	}
	return c.show(e, map[string]string{"deleted": c.ID}, func() { e.printf("Deleted %s.\n", c.ID) })
}

type (
	endpointPauseCommand struct {
		one
		Until string `placeholder:"TIME" help:"Resume automatically: after a duration such as 2h, or at a time such as 2026-03-01T08:00:00Z."`
	}
	endpointMuteCommand struct {
		one
		Until string `placeholder:"TIME" help:"For a duration such as 1h or 24h, or until a time. Default: until the endpoint recovers."`
	}
	endpointUnmuteCommand struct{ one }
	endpointRewindCommand struct {
		one
		Start  string `arg:"" help:"Since when: oldest, or a time such as 2026-03-01T08:00:00Z. now ends a rewind."`
		Reason string `placeholder:"TEXT" help:"Why; recorded in the audit log."`
	}
	connectionCommand  struct{ one }
	certificateCommand struct {
		one
		CommonName string `placeholder:"NAME" help:"The common name in the request. Default: posthorn."`
	}
	endpointResumeCommand struct {
		one
		DropHeld bool `help:"Drop held deliveries instead of sending them."`
	}
	endpointVerifyCommand struct{ one }
)

// Run pauses an endpoint.
func (c endpointPauseCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	until, err := ahead("--until", c.Until, e.Now())
	if err != nil {
		return err
	}
	return of(sdk.PauseEndpoint(ctx, c.ID, client.EndpointPauseInput{Until: until})).print(c.shared, e, e.endpoint)
}

// Run rewinds an endpoint.
func (c endpointRewindCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	in := client.EndpointRewind{Start: c.Start, Reason: nonEmpty(c.Reason)}
	return of(sdk.RewindEndpoint(ctx, c.ID, in)).print(c.shared, e, e.endpoint)
}

// Run mutes the alerts of an endpoint.
func (c endpointMuteCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	until, err := ahead("--until", c.Until, e.Now())
	if err != nil {
		return err
	}
	return of(sdk.MuteEndpoint(ctx, c.ID, client.MuteInput{Until: until})).print(c.shared, e, e.endpoint)
}

// Run unmutes the alerts of an endpoint.
func (c endpointUnmuteCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.UnmuteEndpoint(ctx, c.ID)).print(c.shared, e, e.endpoint)
}

// Run resumes an endpoint.
func (c endpointResumeCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	var in client.ResumeInput
	if c.DropHeld {
		in.Held = new(client.ResumeInputHeldDrop)
	}
	return of(sdk.ResumeEndpoint(ctx, c.ID, in)).print(c.shared, e, e.endpoint)
}

// Run sends an endpoint's verification.
func (c endpointVerifyCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return of(sdk.VerifyEndpoint(ctx, c.ID)).print(c.shared, e, func(client.Verification) {
		e.printf("A verification is on its way; `posthorn endpoints get %s` shows the response.\n", c.ID)
	})
}
