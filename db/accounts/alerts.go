package accounts

import (
	"cmp"
	"context"

	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
)

// ReadAlerts reads, for each of some kinds of a tenant's notices, who gets it by mail, which channels ask for it,
// and whether it is muted.
func ReadAlerts(ctx context.Context, q *sql.Queries, tenant id.UUID, kinds []notice.Kind) ([]show.AlertKind, error) {
	row, err := q.GetTenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	settings := notice.ReadSettings(row.Settings)
	to, err := readAddressees(ctx, q, tenant, settings.Contacts)
	if err != nil {
		return nil, err
	}
	channels, err := q.OwnAlertChannels(ctx, tenant)
	if err != nil {
		return nil, err
	}
	all := make([]show.AlertKind, len(kinds))
	for i, k := range kinds {
		all[i] = show.AlertKind{Kind: k, Muted: settings.Mutes(k)}
		for _, r := range to.of(k) {
			if !r.Unconfirmed {
				all[i].Recipients = append(all[i].Recipients, r.Address)
			}
		}
		for _, c := range channels {
			if filter.MatchType(c.EventTypes, k.EventType()) {
				all[i].Channels = append(all[i].Channels, show.AlertChannel{ID: c.ID, Name: cmp.Or(c.Description, egress.Mask(c.URL))})
			}
		}
	}
	return all, nil
}
