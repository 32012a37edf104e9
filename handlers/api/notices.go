package api

import (
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/handlers"
)

// anyKind is the kind of a request that names none.
const anyKind = "any"

// listNotices lists the tenant's notices.
func (a *api) listNotices(c *handlers.Call) error {
	words := []string{anyKind}
	for _, k := range notice.Kinds() {
		words = append(words, string(k))
	}
	p, err := c.Page(handlers.List{
		Name: "notices", Filters: []handlers.Filter{handlers.BySince, handlers.ByUntil},
		Choices: []handlers.Choice{{Name: "kind", Words: words}},
	})
	if err != nil {
		return err
	}
	low, high := p.Between(time.Unix(0, 0), a.Now())
	ask := sql.ListNoticesDownParams{
		TenantID: c.Actor.Tenant, Low: low, High: high, Kind: p.Chosen["kind"], Most: int32(p.Limit + 1),
	}
	if ask.Kind == anyKind {
		ask.Kind = ""
	}
	var rows []sql.NoticeRow
	err = c.Tx(func(q *db.Tx) (err error) {
		if p.Ascending {
			rows, err = q.ListNoticesUp(c.Ctx(), sql.ListNoticesUpParams(ask))
		} else {
			rows, err = q.ListNoticesDown(c.Ctx(), ask)
		}
		return err
	})
	if err != nil {
		return err
	}
	rows, next := cut(rows, p, func(n sql.NoticeRow) []byte { return n.ID[:] })
	return c.Answer(http.StatusOK, NoticePage{Data: views(rows, noticeView), NextCursor: cursorOrNull(next)})
}

func noticeView(n sql.NoticeRow) Notice {
	out := Notice{
		ID: id.Notice.Format(n.ID), Kind: NoticeKind(n.Kind), Severity: NoticeSeverity(n.Kind.Severity()),
		Details: n.Details, CreatedAt: Time(n.CreatedAt),
	}
	out.EndpointID.SetNull()
	if n.EndpointID != nil {
		out.EndpointID.Set(id.Endpoint.Format(*n.EndpointID))
	}
	return out
}
