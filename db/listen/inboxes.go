package listen

import (
	"context"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/domain/show"
)

// Inboxes creates test inboxes on this server.
type Inboxes struct {
	Keys    *seal.Ring
	BaseURL string // this server's URL, as receivers see it
}

// Create creates a test inbox: an endpoint whose URL is a path of this server with an unguessable token. The settings
// have been validated except for the URL.
func (i Inboxes) Create(ctx context.Context, q *sql.Queries, tenant id.UUID, n endpoints.New, by db.Author) (show.Endpoint, error) {
	token, hash := accounts.NewToken()
	n.Settings.Kind, n.Settings.URL = endpoint.Inbox, i.BaseURL+inbox.Path+token
	e, err := endpoints.Create(ctx, q, i.Keys, tenant, n)
	if err != nil {
		return e, err
	}
	// The tenant has been locked since the endpoint was created.
	count, err := q.CountInboxes(ctx, tenant)
	if err == nil {
		err = inbox.CheckRoom(int(count))
	}
	if err != nil {
		return e, err
	}
	if err := q.InsertInbox(ctx, sql.InsertInboxParams{TenantID: tenant, EndpointID: e.ID, Hash: hash}); err != nil {
		return e, err
	}
	return e, db.Audit(ctx, q, by, db.Audited{
		Tenant: &tenant,
		Action: "endpoint.create",
		Kind:   "endpoint",
		Object: id.Endpoint.Format(e.ID),
		Details: map[string]any{
			"inbox":       true,
			"event_types": e.Settings.EventTypes,
		},
	})
}

// FindInbox finds the inbox of a token, or returns fault.ErrNotFound.
func FindInbox(ctx context.Context, d *db.DB, token string) (found sql.FindInboxRow, err error) {
	err = d.Ingest(ctx, func(q *sql.Queries) error {
		found, err = q.FindInbox(ctx, accounts.HashToken(token))
		return err
	})
	return found, err
}

// InboxRequest is a received request.
type InboxRequest struct {
	Method    string
	Header    http.Header
	Body      []byte
	Challenge string // from the query of a verification by GET
	At        time.Time
}

// ReceiveInInbox stores a request with the result of its signature check, and returns the response: the challenge, or
// the status that the tenant selected.
func ReceiveInInbox(
	ctx context.Context,
	q *sql.Queries,
	ring *seal.Ring,
	tenant, endpointID id.UUID,
	r InboxRequest,
) (answer inbox.Answer, challenge string, err error) {
	e, err := q.GetEndpoint(ctx, tenant, endpointID)
	if err != nil {
		return "", "", err
	}
	box, err := q.GetInbox(ctx, tenant, endpointID)
	if err != nil {
		return "", "", err
	}
	verdict, hint, err := verify(ctx, q, ring, e, r)
	if err != nil {
		return "", "", err
	}
	headers, err := endpoints.Headers(e, ring)
	if err != nil {
		return "", "", err
	}
	if challenge = inbox.Plain(r.Challenge); r.Method != http.MethodGet {
		challenge = inbox.Challenge(r.Header.Get("X-"+e.Prefix+"-Event"), r.Body)
	}
	hidden := map[string]bool{}
	for name := range headers {
		hidden[http.CanonicalHeaderKey(name)] = headers.Hidden(name)
	}
	err = q.InsertInboxRequest(ctx, sql.InsertInboxRequestParams{
		TenantID:   tenant,
		EndpointID: endpointID,
		ID:         db.NewID(),
		Method:     r.Method,
		Head:       inbox.Head(r.Header, func(name string) bool { return hidden[name] }),
		Body:       append([]byte{}, r.Body[:min(len(r.Body), inbox.MaxBody)]...),
		BodyBytes:  int32(len(r.Body)),
		Challenge:  challenge != "",
		Answer:     box.Answer,
		Good:       verdict.Good,
		Code:       verdict.Code,
		Detail:     verdict.Detail,
		SecretHint: hint,
	})
	if err != nil {
		return "", "", err
	}
	return inbox.Answer(box.Answer), challenge, q.TrimInbox(ctx, sql.TrimInboxParams{
		TenantID:   tenant,
		EndpointID: endpointID,
		Others:     inbox.Kept - 1,
	})
}

// verify checks a request's signature with the endpoint's live secrets; hint identifies the secret that matches.
func verify(ctx context.Context, q *sql.Queries, ring *seal.Ring, e sql.Endpoint, r InboxRequest) (
	v inbox.Verdict,
	hint string,
	err error,
) {
	live, err := q.LiveSecrets(ctx, e.TenantID, e.ID)
	if err != nil {
		return v, "", err
	}
	secrets := make([]string, len(live))
	for i, one := range live {
		text, err := ring.Open(one.Sealed, e.TenantID, e.ID)
		if err != nil {
			return v, "", db.Unopened(err)
		}
		secrets[i] = string(text)
	}
	v = inbox.CheckSignature(endpoints.Wire(e), r.Header, r.Body, secrets, r.At)
	if v.Good {
		hint = live[v.Secret].Hint
	}
	return v, hint, nil
}

// AnswerInbox selects an inbox's response. A change is audited.
func AnswerInbox(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, answer inbox.Answer, by db.Author) error {
	if _, err := q.GetInbox(ctx, tenant, endpointID); err != nil {
		return err
	}
	n, err := q.SetInboxAnswer(ctx, sql.SetInboxAnswerParams{
		TenantID:   tenant,
		EndpointID: endpointID,
		Answer:     string(answer),
	})
	if err != nil || n == 0 {
		return err
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "endpoint.inbox_answer",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(endpointID),
		Details: map[string]string{"answer": string(answer)},
	})
}

// EmptyInbox deletes the requests of an inbox.
func EmptyInbox(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID, by db.Author) error {
	if _, err := q.GetInbox(ctx, tenant, endpointID); err != nil {
		return err
	}
	n, err := q.ClearInbox(ctx, tenant, endpointID)
	if err != nil || n == 0 {
		return err
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant:  &tenant,
		Action:  "endpoint.inbox_empty",
		Kind:    "endpoint",
		Object:  id.Endpoint.Format(endpointID),
		Details: map[string]int64{"requests": n},
	})
}

// ReadInbox returns an inbox's response.
func ReadInbox(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (inbox.Answer, error) {
	box, err := q.GetInbox(ctx, tenant, endpointID)
	return inbox.Answer(box.Answer), err
}

// InboxRequests returns an inbox's response and its recent requests, newest first, without headers and bodies.
func InboxRequests(ctx context.Context, q *sql.Queries, tenant, endpointID id.UUID) (inbox.Answer, []inbox.Received, error) {
	answer, err := ReadInbox(ctx, q, tenant, endpointID)
	if err != nil {
		return answer, nil, err
	}
	rows, err := q.ListInboxRequests(ctx, sql.ListInboxRequestsParams{
		TenantID:    tenant,
		EndpointID:  endpointID,
		KeptSeconds: inbox.KeptFor.Seconds(),
		Limit:       inbox.Kept,
	})
	received := make([]inbox.Received, len(rows))
	for i, row := range rows {
		received[i] = receivedOf(sql.InboxRequestRow(row))
	}
	return answer, received, err
}

// ReadInboxRequest reads one complete request.
func ReadInboxRequest(ctx context.Context, q *sql.Queries, tenant, requestID id.UUID) (inbox.Received, error) {
	row, err := q.GetInboxRequest(ctx, sql.GetInboxRequestParams{
		TenantID:    tenant,
		ID:          requestID,
		KeptSeconds: inbox.KeptFor.Seconds(),
	})
	return receivedOf(row), err
}

func receivedOf(row sql.InboxRequestRow) inbox.Received {
	return inbox.Received{
		ID:         row.ID,
		At:         row.ReceivedAt,
		Method:     row.Method,
		Challenge:  row.Challenge,
		Answer:     inbox.Answer(row.Answer),
		Good:       row.Good,
		Code:       row.Code,
		Detail:     row.Detail,
		SecretHint: row.SecretHint,
		Head:       row.Head,
		Body:       row.Body,
		Bytes:      int(row.BodyBytes),
	}
}
