package db

import (
	"context"
	"net/http"
	"time"

	"posthorn/db/seal"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/domain/signature"
)

// CreateInbox makes a test inbox in the transaction at hand: an endpoint whose URL is a path of this server with a token that
// nobody guesses. settings have been checked but for the URL; base is the server's public URL.
func (q *Queries) CreateInbox(ctx context.Context, ring *seal.Ring, tenant id.UUID, most int, s endpoint.Settings, secret endpoint.Secret, base string, by Author) (FullEndpoint, error) {
	token, hash := NewToken()
	s.Kind, s.URL = endpoint.Inbox, base+inbox.Path+token
	e, err := q.createEndpoint(ctx, ring, tenant, most, s, secret)
	if err != nil {
		return e, err
	}
	// The tenant is locked since the endpoint was made.
	n, err := q.CountInboxes(ctx, tenant)
	if err == nil {
		err = inbox.CheckRoom(int(n))
	}
	if err != nil {
		return e, err
	}
	if err := q.InsertInbox(ctx, InsertInboxParams{TenantID: tenant, EndpointID: e.ID, Hash: hash}); err != nil {
		return e, err
	}
	return e, q.Audit(ctx, by, Audited{
		Tenant: &tenant, Action: "endpoint.create", Kind: "endpoint", Object: id.Endpoint.Format(e.ID), Details: map[string]any{"inbox": true, "event_types": e.EventTypes},
	})
}

// FindInbox is whose inbox a token opens; fault.ErrNotFound for one that opens none.
func (d *DB) FindInbox(ctx context.Context, token string) (found FindInboxRow, err error) {
	err = d.Ingest(ctx, func(q *Queries) error {
		found, err = q.FindInbox(ctx, HashToken(token))
		return err
	})
	return found, err
}

// InboxRequest is a request as it came in.
type InboxRequest struct {
	Method    string
	Header    http.Header
	Body      []byte
	Challenge string // the query's, of a verification by GET
	At        time.Time
}

// ReceiveInInbox keeps a request with the verdict on its signature, and says what to answer: the challenge, or the status
// that somebody has chosen.
func (q *Queries) ReceiveInInbox(ctx context.Context, ring *seal.Ring, tenant, u id.UUID, r InboxRequest) (answer inbox.Answer, challenge string, err error) {
	e, err := q.GetEndpoint(ctx, GetEndpointParams{TenantID: tenant, ID: u})
	if err != nil {
		return "", "", err
	}
	box, err := q.GetInbox(ctx, GetInboxParams{TenantID: tenant, EndpointID: u})
	if err != nil {
		return "", "", err
	}
	verdict, hint, err := q.judge(ctx, ring, e, r)
	if err != nil {
		return "", "", err
	}
	headers, err := e.Headers(ring)
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
	err = q.InsertInboxRequest(ctx, InsertInboxRequestParams{
		TenantID: tenant, EndpointID: u, ID: NewID(), Method: r.Method, Head: inbox.Head(r.Header, func(name string) bool { return hidden[name] }),
		Body: append([]byte{}, r.Body[:min(len(r.Body), inbox.MaxBody)]...), BodyBytes: int32(len(r.Body)), Challenge: challenge != "", Answer: box.Answer,
		Good: verdict.Good, Code: verdict.Code, Detail: verdict.Detail, SecretHint: hint,
	})
	if err != nil {
		return "", "", err
	}
	return inbox.Answer(box.Answer), challenge, q.TrimInbox(ctx, TrimInboxParams{TenantID: tenant, EndpointID: u, Others: inbox.Kept - 1})
}

// judge checks a request's signature with the endpoint's live secrets; hint tells which of them it is good for.
func (q *Queries) judge(ctx context.Context, ring *seal.Ring, e Endpoint, r InboxRequest) (v inbox.Verdict, hint string, err error) {
	live, err := q.LiveSecrets(ctx, LiveSecretsParams{TenantID: e.TenantID, EndpointID: e.ID})
	if err != nil {
		return v, "", err
	}
	secrets := make([]string, len(live))
	for i, one := range live {
		text, err := ring.Open(one.Sealed, e.TenantID, e.ID)
		if err != nil {
			return v, "", unopened(err)
		}
		secrets[i] = string(text)
	}
	v = inbox.Judge(signature.Format(e.Format), e.Prefix, r.Header, r.Body, secrets, r.At)
	if v.Good {
		hint = live[v.Secret].Hint
	}
	return v, hint, nil
}

// AnswerInbox chooses what an inbox answers; it is audited where it changes.
func (q *Queries) AnswerInbox(ctx context.Context, tenant, u id.UUID, answer inbox.Answer, by Author) error {
	if _, err := q.GetInbox(ctx, GetInboxParams{TenantID: tenant, EndpointID: u}); err != nil {
		return err
	}
	n, err := q.SetInboxAnswer(ctx, SetInboxAnswerParams{TenantID: tenant, EndpointID: u, Answer: string(answer)})
	if err != nil || n == 0 {
		return err
	}
	return q.Audit(ctx, by, Audited{
		Tenant: &tenant, Action: "endpoint.inbox_answer", Kind: "endpoint", Object: id.Endpoint.Format(u), Details: map[string]string{"answer": string(answer)},
	})
}

// EmptyInbox forgets what an inbox has received.
func (q *Queries) EmptyInbox(ctx context.Context, tenant, u id.UUID, by Author) error {
	if _, err := q.GetInbox(ctx, GetInboxParams{TenantID: tenant, EndpointID: u}); err != nil {
		return err
	}
	n, err := q.ClearInbox(ctx, ClearInboxParams{TenantID: tenant, EndpointID: u})
	if err != nil || n == 0 {
		return err
	}
	return q.Audit(ctx, by, Audited{
		Tenant: &tenant, Action: "endpoint.inbox_empty", Kind: "endpoint", Object: id.Endpoint.Format(u), Details: map[string]int64{"requests": n},
	})
}

// InboxRequests are what an inbox has received lately, newest first, without the bodies.
func (q *Queries) InboxRequests(ctx context.Context, tenant, u id.UUID) (Inbox, []ListInboxRequestsRow, error) {
	box, err := q.GetInbox(ctx, GetInboxParams{TenantID: tenant, EndpointID: u})
	if err != nil {
		return box, nil, err
	}
	rows, err := q.ListInboxRequests(ctx, ListInboxRequestsParams{TenantID: tenant, EndpointID: u, KeptSeconds: inbox.KeptFor.Seconds(), Most: inbox.Kept})
	return box, rows, err
}

// ReadInboxRequest is one of a tenant's, whole.
func (q *Queries) ReadInboxRequest(ctx context.Context, tenant, u id.UUID) (InboxRequestRow, error) {
	return q.GetInboxRequest(ctx, GetInboxRequestParams{TenantID: tenant, ID: u, KeptSeconds: inbox.KeptFor.Seconds()})
}

// removeInbox takes away what an inbox received, and its token.
func (q *Queries) removeInbox(ctx context.Context, tenant, u id.UUID) error {
	if _, err := q.ClearInbox(ctx, ClearInboxParams{TenantID: tenant, EndpointID: u}); err != nil {
		return err
	}
	return q.DropInbox(ctx, DropInboxParams{TenantID: tenant, EndpointID: u})
}
