package accounts

import (
	"context"
	"encoding/json"
	"fmt"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

// Notice is something to tell a tenant.
type Notice struct {
	ID       id.UUID // zero: a new one
	Tenant   id.UUID
	Kind     notice.Kind
	Key      string   // what makes it one: unique per tenant, e.g. "endpoint.disabled:ep_...:<status_at>"
	Endpoint *id.UUID // nil: concerns none
	Details  any      // becomes a JSON object; nil is an empty one; never a secret
}

// PostNotice posts a notice in the transaction at hand, which is one of the worker, the tenant or the console: what the
// notice tells and the notice are true together. Its mails and events follow by themselves. False: one with this key is
// there already.
func PostNotice(ctx context.Context, q *sql.Queries, n Notice) (bool, error) {
	if !n.Kind.Known() || n.Key == "" {
		return false, fmt.Errorf("post notice: kind %q, key %q", n.Kind, n.Key)
	}
	details, err := encodeObject(n.Details)
	if err != nil {
		return false, fmt.Errorf("encode notice %s: %w", n.Kind, err)
	}
	u := n.ID
	if u.IsZero() {
		u = db.NewID()
	}
	rows, err := q.InsertNotice(ctx, sql.InsertNoticeParams{
		TenantID: n.Tenant, ID: u, Kind: n.Kind, Key: n.Key, EndpointID: n.Endpoint, Details: details, CreatedAt: u.Time(),
	})
	return rows > 0, err
}

// encodeObject writes what a jsonb column holds; nothing is an empty object.
func encodeObject(v any) (json.RawMessage, error) {
	if v == nil {
		return json.RawMessage("{}"), nil
	}
	return json.Marshal(v)
}
