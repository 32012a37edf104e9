package accounts

import (
	"context"
	"encoding/json"
	"fmt"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
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
		TenantID:   n.Tenant,
		ID:         noticeID,
		Kind:       n.Kind,
		Key:        n.Key,
		EndpointID: n.Endpoint,
		Details:    details,
		CreatedAt:  noticeID.Time(),
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

// NoticeList narrows a tenant's notices. Zero fields narrow nothing.
type NoticeList struct {
	Kinds    []string
	Endpoint *id.UUID
	Member   id.UUID // who reads them; zero: somebody who marks none as read
	Unread   bool    // only those that the member has not read
}

// ListNotices reads a page of a tenant's notices.
func ListNotices(ctx context.Context, q *sql.Queries, tenant id.UUID, l NoticeList, r show.Range) (page show.Page[show.Notice], err error) {
	seen := id.Last
	if !l.Member.IsZero() {
		if seen, err = q.NoticesSeen(ctx, tenant, l.Member); err != nil {
			return page, err
		}
	}
	low, high := db.Bounds(r)
	if l.Unread && seen.Compare(low) > 0 {
		low = seen
	}
	rows, err := q.ListNotices(ctx, sql.ListNoticesParams{
		TenantID:   tenant,
		Low:        low,
		High:       high,
		Newest:     !r.Ascending,
		Kinds:      l.Kinds,
		EndpointID: l.Endpoint,
		Limit:      db.Limit(r),
	})
	found := show.CutByID(rows, r.Limit, func(row sql.NoticeRow) id.UUID { return row.ID })
	return show.Each(found, func(row sql.NoticeRow) show.Notice {
		return show.Notice{
			ID:        row.ID,
			Kind:      row.Kind,
			Endpoint:  row.EndpointID,
			Details:   row.Details,
			CreatedAt: row.CreatedAt,
			Unread:    row.ID.Compare(seen) > 0,
		}
	}), err
}

// CountUnread counts the notices for a role that a member has not read, up to 100.
func CountUnread(ctx context.Context, d *db.DB, tenant, member id.UUID, role access.Role) (n int64, err error) {
	err = d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		n, err = q.CountUnread(ctx, sql.CountUnreadParams{
			TenantID: tenant,
			MemberID: member,
			Kinds:    notice.NamesFor(role),
		})
		return err
	})
	return n, err
}

// Preferences says which of some kinds of notices a recipient gets by mail.
func Preferences(ctx context.Context, q *sql.Queries, tenant id.UUID, recipient string, kinds []notice.Kind) (map[notice.Kind]bool, error) {
	rows, err := q.PreferencesOf(ctx, tenant, recipient)
	wanted := map[notice.Kind]bool{}
	for _, k := range kinds {
		wanted[k] = k.MailedByDefault()
	}
	for _, r := range rows {
		if _, asked := wanted[r.Kind]; asked {
			wanted[r.Kind] = r.Wanted
		}
	}
	return wanted, err
}

// SeeNotices marks a member's notices as read, up to the newest one that the page showed.
func SeeNotices(ctx context.Context, d *db.DB, tenant, member, newest id.UUID) error {
	return d.Tenant(ctx, tenant, func(q *sql.Queries) error {
		return q.SeeNotices(ctx, sql.SeeNoticesParams{TenantID: tenant, MemberID: member, Newest: newest})
	})
}

// RoleOf is a person's role in a tenant. Somebody who is no member is fault.ErrNotFound.
func RoleOf(ctx context.Context, q *sql.Queries, tenant, person id.UUID) (access.Role, error) {
	role, err := q.RecipientRole(ctx, tenant, person)
	return access.Role(role), err
}

// SetPreferences stores which notices a recipient wants by mail, in the caller's transaction, and audits what changed.
// recipient is one of notice.PersonRecipient or notice.AddressRecipient.
func SetPreferences(
	ctx context.Context,
	q *sql.Queries,
	tenant id.UUID,
	recipient string,
	wanted map[notice.Kind]bool,
	by db.Author,
) error {
	changed := map[string]bool{}
	for kind, on := range wanted {
		n, err := q.SetPreference(ctx, sql.SetPreferenceParams{
			TenantID:  tenant,
			Recipient: recipient,
			Kind:      kind,
			Wanted:    on,
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
		Tenant:  &tenant,
		Action:  "notice_preferences.changed",
		Kind:    "notice_preferences",
		Object:  object,
		Details: changed,
	})
}
