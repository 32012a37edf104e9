package api

import (
	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/access"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// listNotices lists the tenant's notices.
func (a *api) listNotices(c *handlers.Call) error {
	kinds := handlers.NoticeKinds(access.Owner)
	l := handlers.List{
		Name:    "notices",
		Filters: []handlers.Filter{handlers.BySince, handlers.ByUntil},
		Choices: []handlers.Choice{kinds},
	}
	return list(c, l, func(q *db.Tx, p handlers.Page) (show.Page[show.Notice], error) {
		return accounts.ListNotices(c.Ctx(), q, c.Actor.Tenant, accounts.NoticeList{Kinds: p.Words(kinds)}, p.Range)
	}, encodeNotice)
}

func encodeNotice(n show.Notice) Notice {
	out := Notice{
		ID:        id.Notice.Format(n.ID),
		Kind:      NoticeKind(n.Kind),
		Severity:  NoticeSeverity(n.Kind.Severity()),
		Details:   n.Details,
		CreatedAt: Time(n.CreatedAt),
	}
	out.EndpointID.SetNull()
	if n.Endpoint != nil {
		out.EndpointID.Set(id.Endpoint.Format(*n.Endpoint))
	}
	return out
}
