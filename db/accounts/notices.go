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

// Notice is a message to a tenant.
type Notice struct {
	ID       id.UUID // zero: a new one
	Tenant   id.UUID
	Kind     notice.Kind
	Key      string   // unique for each tenant, e.g. "endpoint.disabled:ep_...:<status_at>"
	Endpoint *id.UUID // nil: concerns none
	Details  any      // becomes a JSON object; nil is an empty one; never a secret
}

// PostNotice posts a notice in the caller's transaction, which runs as the worker, the tenant or the console, so the
// notice commits together with what it reports. Its mails and events follow later. It returns false if a notice with
// this key exists already.
func PostNotice(ctx context.Context, q *sql.Queries, n Notice) (bool, error) {
	if !n.Kind.Known() || n.Key == "" {
		return false, fmt.Errorf("post notice: kind %q, key %q", n.Kind, n.Key)
	}
	details, err := encodeObject(n.Details)
	if err != nil {
		return false, fmt.Errorf("encode notice %s: %w", n.Kind, err)
	}
	noticeID := n.ID
	if noticeID.IsZero() {
		noticeID = db.NewID()
	}
	rows, err := q.InsertNotice(ctx, sql.InsertNoticeParams{
		TenantID: n.Tenant, ID: noticeID, Kind: n.Kind, Key: n.Key, EndpointID: n.Endpoint, Details: details,
		CreatedAt: noticeID.Time(),
	})
	return rows > 0, err
}

// encodeObject writes the value of a jsonb column; nil becomes an empty object.
func encodeObject(v any) (json.RawMessage, error) {
	if v == nil {
		return json.RawMessage("{}"), nil
	}
	return json.Marshal(v)
}

// SeeNotices marks a member's notices as read, up to the newest one that the page showed.
func SeeNotices(ctx context.Context, d *db.DB, tenant, member, newest id.UUID) error {
	return d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		return q.SeeNotices(ctx, sql.SeeNoticesParams{TenantID: tenant, MemberID: member, Newest: newest})
	})
}

// SetPreferences stores which notices a recipient wants by mail, in the caller's transaction, and audits what changed.
// recipient is one of notice.PersonRecipient or notice.AddressRecipient.
func SetPreferences(
	ctx context.Context, q *sql.Queries, tenant id.UUID, recipient string, wanted map[notice.Kind]bool, by db.Author,
) error {
	changed := map[string]bool{}
	for kind, on := range wanted {
		n, err := q.SetPreference(ctx, sql.SetPreferenceParams{
			TenantID: tenant, Recipient: recipient, Kind: kind, Wanted: on,
		})
		if err != nil {
			return err
		}
		if n > 0 {
			changed[string(kind)] = on
		}
	}
	if len(changed) == 0 {
		return nil
	}
	object := recipient
	if person, ok := notice.RecipientPerson(recipient); ok {
		object = id.Person.Format(person)
	}
	return db.Audit(ctx, q, by, db.Audited{
		Tenant: &tenant, Action: "notice_preferences.changed", Kind: "notice_preferences", Object: object, Details: changed,
	})
}
