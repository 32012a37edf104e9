package mcp

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/subscriptions"
	"posthorn/domain/access"
	"posthorn/domain/catalogue"
	"posthorn/domain/delivery"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/feed"
	"posthorn/domain/id"
	rules "posthorn/domain/mcp"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// Poster sends messages that are no deliveries.
type Poster interface {
	Post(ctx context.Context, f endpoints.Facts, messageID string, body []byte) (delivery.Result, []byte, error)
}

// PrincipalHeader names whoever a caller with a key acts for: the subject of its own users' tokens, say. Without it,
// the principal is the key.
const PrincipalHeader = "Posthorn-Principal"

// The codes of the extension.
const (
	codeNotFound    = -32011
	codeForbidden   = rules.CodeForbidden
	codeExhausted   = -32013
	codeUnsupported = -32014
	codeCallback    = -32015
)

// workTime bounds what one message does with the database.
const workTime = 5 * time.Second

// tx runs fn in a transaction of the tenant. The route itself has no timeout, since a stream can last.
func (s *server) tx(c *handlers.Call, fn func(context.Context, *db.Tx) error) error {
	ctx, cancel := context.WithTimeout(c.Ctx(), workTime)
	defer cancel()
	return s.DB.Tenant(ctx, c.Actor.Tenant, func(q *db.Tx) error { return fn(ctx, q) })
}

// requires rejects a caller whose key lacks a scope. People with a token have all events, and no scopes.
func requires(c *handlers.Call, scope access.Scope) error {
	if c.Actor.Principal != "" || slices.Contains(c.Actor.Scopes, scope) {
		return nil
	}
	return &rpcError{Code: codeForbidden, Message: "This key lacks the scope " + string(scope) + "."}
}

// principal is whoever the caller acts for.
func principal(c *handlers.Call) (string, error) {
	if c.Actor.Principal != "" {
		return c.Actor.Principal, nil
	}
	text := c.Request.Header.Get(PrincipalHeader)
	if text == "" {
		return id.Key.Format(c.Actor.Key), nil
	}
	return text, rules.CheckPrincipal(text)
}

// modes are the ways in which every event type is delivered.
var modes = []string{"webhook", "poll", "push"}

type definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Delivery    []string        `json:"delivery"`
	Input       json.RawMessage `json:"inputSchema"`
	Payload     json.RawMessage `json:"payloadSchema"`
}

// typesPage is how many event types a page of events/list has.
const typesPage = 100

// listEvents lists the tenant's catalog.
func (s *server) listEvents(c *handlers.Call, params json.RawMessage) (any, error) {
	if err := requires(c, access.WebhooksRead); err != nil {
		return nil, err
	}
	var in struct {
		Cursor string `json:"cursor"`
	}
	if len(params) > 0 && json.Unmarshal(params, &in) != nil || in.Cursor != "" && !event.ValidType(in.Cursor) {
		return nil, invalid("cursor must be nextCursor of the response before.")
	}
	var page show.Page[catalogue.Entry]
	err := s.tx(c, func(ctx context.Context, q *db.Tx) (err error) {
		page, err = events.Types(ctx, q, c.Actor.Tenant, show.Range{Limit: typesPage, Ascending: true, After: []byte(in.Cursor)})
		return err
	})
	if err != nil {
		return nil, err
	}
	out := struct {
		result
		Events []definition `json:"events"`
		Next   string       `json:"nextCursor,omitempty"`
	}{s.complete(), []definition{}, string(page.Next)}
	for _, e := range page.Rows {
		if e.Deprecated {
			continue
		}
		out.Events = append(out.Events, definition{
			Name:        e.Name,
			Description: e.Description,
			Delivery:    modes,
			Input:       rules.InputSchema(e.Schema),
			Payload:     rules.PayloadSchema(e.Schema),
		})
	}
	return out, nil
}

// asked are the parameters of poll, stream, subscribe, and unsubscribe.
type asked struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Cursor    *string         `json:"cursor"`
	MaxAge    *int64          `json:"maxAgeMs"`
	MaxEvents *int            `json:"maxEvents"`
	TTL       json.RawMessage `json:"ttlMs"`
	Delivery  struct {
		Mode   string `json:"mode"`
		URL    string `json:"url"`
		Secret string `json:"secret"`
	} `json:"delivery"`

	canonical, filter string
	from              *feed.Place
	floor             time.Time
}

// read reads and checks the parameters that all have. What it rejects is an event type that is not in the catalog,
// arguments that do not fit, and a cursor that is none.
func (s *server) read(c *handlers.Call, params json.RawMessage) (in asked, err error) {
	if json.Unmarshal(params, &in) != nil || in.Name == "" {
		return in, invalid("The parameters are name, a text, and arguments, an object.")
	}
	var entry catalogue.Entry
	err = s.tx(c, func(ctx context.Context, q *db.Tx) (err error) {
		if !event.ValidType(in.Name) {
			return fault.ErrNotFound
		}
		entry, err = events.ReadType(ctx, q, c.Actor.Tenant, in.Name)
		return err
	})
	if db.IsNotFound(err) {
		return in, &rpcError{Code: codeNotFound, Message: "Unknown event. events/list names those that there are.", Data: map[string]string{"kind": "event"}}
	} else if err != nil {
		return in, err
	}
	if in.canonical, in.filter, err = rules.Arguments(entry.Schema, in.Arguments); err != nil {
		return in, err
	}
	if in.Cursor != nil {
		place, err := feed.ParsePlace(*in.Cursor)
		if err != nil {
			return in, invalid("cursor must be a cursor that this server returned, or null.")
		}
		in.from = &place
	}
	if in.MaxAge != nil {
		if *in.MaxAge < 0 {
			return in, invalid("maxAgeMs must not be negative.")
		}
		if most := int64(1<<62) / int64(time.Millisecond); *in.MaxAge < most {
			in.floor = s.Now().Add(-time.Duration(*in.MaxAge) * time.Millisecond)
		}
	}
	return in, nil
}

// life reads ttlMs: a number, null, or nothing.
func (in asked) life() (time.Duration, error) {
	var ms *int64
	if len(in.TTL) > 0 && json.Unmarshal(in.TTL, &ms) != nil || ms != nil && *ms <= 0 {
		return 0, invalid("ttlMs must be a positive number of milliseconds, or null.")
	}
	return rules.Life(ms, len(in.TTL) > 0 && ms == nil), nil
}

// deliveryStatus is what a client is told about its subscription when it refreshes it.
type deliveryStatus struct {
	Active       bool    `json:"active"`
	LastDelivery *string `json:"lastDeliveryAt"`
	LastError    *string `json:"lastError"`
	FailedSince  *string `json:"failedSince,omitempty"`
}

func orNull(at time.Time) *string {
	if at.IsZero() {
		return nil
	}
	return new(at.UTC().Format(time.RFC3339Nano))
}

func statusOf(g subscriptions.Granted) *deliveryStatus {
	if !g.Refreshed {
		return nil
	}
	counters := g.Endpoint.Counters
	out := &deliveryStatus{Active: !g.Suspended, LastDelivery: orNull(counters.LastSuccessAt)}
	if !counters.FirstFailureAt.IsZero() {
		out.LastError, out.FailedSince = new(rules.Reason(g.Endpoint.Last)), orNull(counters.FirstFailureAt)
	}
	return out
}

// subscribe stores a subscription, or refreshes it. The receiver is asked first, unless it is active and its secret
// stays.
func (s *server) subscribe(c *handlers.Call, params json.RawMessage) (any, error) {
	if err := requires(c, access.WebhooksWrite); err != nil {
		return nil, err
	}
	who, err := principal(c)
	if err != nil {
		return nil, err
	}
	in, err := s.read(c, params)
	if err != nil {
		return nil, err
	}
	if in.Delivery.Mode != "webhook" {
		return nil, &rpcError{
			Code:    codeUnsupported,
			Message: "events/subscribe delivers to a webhook alone.",
			Data: map[string]string{
				"feature": "deliveryMode",
				"value":   in.Delivery.Mode,
			},
		}
	}
	w := subscriptions.Wanted{Principal: who, EventType: in.Name, Arguments: in.canonical, Secret: in.Delivery.Secret, From: in.from, Floor: in.floor}
	if w.Life, err = in.life(); err != nil {
		return nil, err
	}
	if err := rules.CheckSecret(w.Secret); err != nil {
		return nil, err
	}
	if err := rules.CheckURL(in.Delivery.URL); err != nil {
		return nil, err
	}
	w.ID = rules.ID(who, in.Delivery.URL, in.Name, in.canonical)
	store := subscriptions.Store{Tenant: c.Actor.Tenant, Keys: s.Keys, By: c.Author(), Now: s.Now()}
	trusted := false
	err = s.tx(c, func(ctx context.Context, q *db.Tx) error {
		hosts, err := subscriptions.Access(ctx, q, c.Actor.Tenant)
		if err != nil {
			return err
		}
		w.MessageID = hosts.MessageID(in.Delivery.URL)
		defaults, err := endpoints.Defaults(ctx, q, c.Actor.Tenant, rules.MaxPerTenant)
		if err != nil {
			return err
		}
		if w.Settings, err = subscriptions.Settings(defaults.Settings, w, in.Delivery.URL, in.filter).Check(s.Egress); err != nil {
			return err
		}
		trusted, err = store.Trusted(ctx, q, w.ID, w.Secret)
		return err
	})
	if err == nil && !trusted {
		err = s.challenge(c.Ctx(), c.Actor.Tenant, w)
	}
	if err != nil {
		return nil, err
	}
	var g subscriptions.Granted
	err = s.tx(c, func(ctx context.Context, q *db.Tx) (err error) {
		g, err = store.Subscribe(ctx, q, w)
		return err
	})
	var full *subscriptions.LimitError
	if errors.As(err, &full) {
		return nil, &rpcError{Code: codeExhausted, Message: full.Error(), Data: map[string]any{"limit": "subscriptions", "max": full.Most}}
	} else if err != nil {
		return nil, err
	}
	return struct {
		result
		ID        string          `json:"id"`
		Refresh   string          `json:"refreshBefore"`
		Cursor    string          `json:"cursor"`
		Truncated bool            `json:"truncated"`
		Status    *deliveryStatus `json:"deliveryStatus,omitempty"`
	}{s.complete(), g.ID, g.ExpiresAt.UTC().Format(time.RFC3339Nano), g.Cursor, g.Truncated, statusOf(g)}, nil
}

// challenge sends a text that nobody else knows to the receiver, which proves by returning it that it wants events.
func (s *server) challenge(ctx context.Context, tenant id.UUID, w subscriptions.Wanted) error {
	text := rand.Text() + rand.Text()
	body, err := json.Marshal(map[string]string{"type": "verification", "challenge": text})
	if err != nil {
		return err
	}
	f := endpoints.Facts{Settings: w.Settings, Secrets: []endpoints.Secret{{Text: w.Secret}}}
	if err := f.Complete(ctx, s.DB, s.Keys, tenant, s.BaseURL); err != nil {
		return err
	}
	r, answer, err := s.Poster.Post(ctx, f, "msg_verification_"+rand.Text(), body)
	if err != nil {
		return err
	}
	reason := "challenge_failed"
	var got struct {
		Challenge string `json:"challenge"`
	}
	switch {
	case r.Failure != delivery.FailNone || r.Status < 200 || r.Status > 299:
		reason = rules.Reason(r)
	case json.Unmarshal(answer, &got) == nil && subtle.ConstantTimeCompare([]byte(got.Challenge), []byte(text)) == 1:
		return nil
	}
	return &rpcError{
		Code:    codeCallback,
		Message: "The callback URL did not return the challenge in the field challenge of a JSON object, with status 200.",
		Data:    map[string]string{"reason": reason},
	}
}

// unsubscribe ends a subscription at its client's wish.
func (s *server) unsubscribe(c *handlers.Call, params json.RawMessage) (any, error) {
	if err := requires(c, access.WebhooksWrite); err != nil {
		return nil, err
	}
	who, err := principal(c)
	if err != nil {
		return nil, err
	}
	in, err := s.read(c, params)
	if err != nil {
		return nil, err
	}
	subscription := rules.ID(who, in.Delivery.URL, in.Name, in.canonical)
	store := subscriptions.Store{Tenant: c.Actor.Tenant, Keys: s.Keys, By: c.Author(), Now: s.Now()}
	err = s.tx(c, func(ctx context.Context, q *db.Tx) error {
		_, err := store.Remove(ctx, q, subscription)
		return err
	})
	if db.IsNotFound(err) {
		return nil, &rpcError{Code: codeNotFound, Message: "There is no such subscription.", Data: map[string]string{"kind": "subscription"}}
	} else if err != nil {
		return nil, err
	}
	return s.complete(), nil
}

// Terminate tells a client that somebody else has ended its subscription. It is tried once: a client that does not
// hear it is told so when it refreshes.
func Terminate(ctx context.Context, p Poster, f endpoints.Facts) {
	if p != nil && len(f.Secrets) > 0 {
		_, _, _ = p.Post(ctx, f, "msg_terminated_"+rand.Text(), rules.Terminated())
	}
}
