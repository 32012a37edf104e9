package accounts

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/egress"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/settings"
	"posthorn/domain/show"
)

// keepAlerts is for how long alerts that ended are listed.
const keepAlerts = 90 * 24 * time.Hour

// RaiseAlert opens an alert of the platform's operators, or notes that its cause is still there. Channels are told when
// it opens, in the caller's transaction, which runs as the worker.
func RaiseAlert(ctx context.Context, q *sql.Queries, links Links, a incidents.Alert, at time.Time) error {
	p := sql.RaiseAlertParams{
		ID:      db.NewID(),
		Kind:    a.Kind,
		Key:     a.Key,
		Title:   a.Title,
		Message: a.Message,
		Page:    a.Page,
		At:      at,
	}
	if tenant, err := id.Tenant.Parse(a.Tenant); err == nil {
		p.AboutTenant = &tenant
	}
	if endpoint, err := id.Endpoint.Parse(a.Endpoint); err == nil {
		p.AboutEndpoint = &endpoint
	}
	open, err := q.RaiseAlert(ctx, p)
	if err != nil || open != p.ID {
		return err
	}
	o, err := readOperations(ctx, q)
	if err != nil || o.mutes(a.Kind) || o.concerns(a) {
		return err
	}
	sent, err := o.tell(ctx, q, links, incidents.Kept{ID: p.ID, Alert: a, OpenedAt: at})
	if err != nil || !sent {
		return err
	}
	return q.MarkAlertSent(ctx, p.ID)
}

// EndAlerts ends the alerts whose cause has been absent for long enough, and tells the channels that were told of it.
func EndAlerts(ctx context.Context, q *sql.Queries, links Links, at time.Time) error {
	if err := q.SeeDisabled(ctx, at, incidents.Disabled); err != nil {
		return err
	}
	rows, err := q.OpenAlerts(ctx)
	if err != nil {
		return err
	}
	var o *operations
	for _, r := range rows {
		k := keptOf(r)
		if !k.Over(at) {
			continue
		}
		if err := q.EndAlert(ctx, at, k.ID); err != nil {
			return err
		}
		if !k.Sent {
			continue
		}
		if o == nil {
			read, err := readOperations(ctx, q)
			if err != nil {
				return err
			}
			o = &read
		}
		k.EndedAt = at
		if _, err := o.tell(ctx, q, links, k); err != nil {
			return err
		}
	}
	return q.DropOldAlerts(ctx, at.Add(-keepAlerts))
}

// operations are how operators are told: the platform's own tenant with its channels, and what is muted.
type operations struct {
	tenant   id.UUID // zero: there is none
	channels channels
	settings []byte
}

func readOperations(ctx context.Context, q *sql.Queries) (o operations, err error) {
	if o.settings, err = q.PlatformSettings(ctx); err != nil {
		return o, err
	}
	if o.tenant = platformTenant(o.settings); !o.tenant.IsZero() {
		o.channels, err = readChannels(ctx, q, []id.UUID{o.tenant})
	}
	return o, err
}

// mutes reports whether operators muted a kind, for mail and channels.
func (o operations) mutes(k incidents.Kind) bool { return !settings.On(k.Setting(), o.settings) }

// concerns reports whether an alert is about the platform's own tenant. Its endpoints are the channels: two that fail
// would send each other one alert after the other.
func (o operations) concerns(a incidents.Alert) bool {
	return a.Tenant != "" && a.Tenant == id.Tenant.Format(o.tenant)
}

// tell emits an alert in the platform's own tenant, if a channel asks for it, and reports whether it did.
func (o operations) tell(ctx context.Context, q *sql.Queries, links Links, k incidents.Kept) (bool, error) {
	wanted := false
	for _, patterns := range o.channels[o.tenant] {
		wanted = wanted || filter.MatchType(patterns, k.Alert.Kind.EventType())
	}
	if !wanted {
		return false, nil
	}
	alert := k.Data(links.ConsoleBase())
	data, err := json.Marshal(alert)
	if err != nil {
		return false, err
	}
	_, err = q.EmitAlert(ctx, sql.EmitAlertParams{
		Tenant:     id.Tenant.Format(o.tenant),
		Type:       k.Alert.Kind.EventType(),
		Data:       string(data),
		Key:        alert.DedupKey,
		OccurredAt: alert.At,
	})
	return err == nil, err
}

// keptOf is an alert as it is stored.
func keptOf(r sql.PlatformAlert) incidents.Kept {
	k := incidents.Kept{
		ID:       r.ID,
		OpenedAt: r.OpenedAt,
		SeenAt:   r.SeenAt,
		EndedAt:  db.OrZero(r.EndedAt),
		Sent:     r.Sent,
		Alert: incidents.Alert{
			Kind:    r.Kind,
			Key:     r.Key,
			Title:   r.Title,
			Message: r.Message,
			Page:    r.Page,
		},
	}
	if r.AboutTenant != nil {
		k.Alert.Tenant = id.Tenant.Format(*r.AboutTenant)
	}
	if r.AboutEndpoint != nil {
		k.Alert.Endpoint = id.Endpoint.Format(*r.AboutEndpoint)
	}
	return k
}

// ListPlatformAlerts reads the alerts of the operators, the open ones first, then the newest.
func ListPlatformAlerts(ctx context.Context, q *sql.Queries, most int) ([]incidents.Kept, error) {
	rows, err := q.ListPlatformAlerts(ctx, int32(most))
	list := make([]incidents.Kept, len(rows))
	for i, r := range rows {
		list[i] = keptOf(r)
	}
	return list, err
}

// OperatorAlerts is where the platform's alerts are sent.
type OperatorAlerts struct {
	Tenant    id.UUID  // the platform's own; zero: there is none
	Operators []string // who get mails
	Kinds     []OperatorAlertKind
	Channels  []show.AlertChannel
}

// OperatorAlertKind is where alerts of a kind are sent.
type OperatorAlertKind struct {
	Kind     incidents.Kind
	Muted    bool
	Channels []show.AlertChannel
}

// ReadOperatorAlerts reads where the platform's alerts are sent. It runs as the console.
func ReadOperatorAlerts(ctx context.Context, q *sql.Queries) (v OperatorAlerts, err error) {
	platform, err := q.PlatformSettings(ctx)
	if err != nil {
		return v, err
	}
	people, err := q.AlertedOperators(ctx)
	if err != nil {
		return v, err
	}
	for _, p := range people {
		v.Operators = append(v.Operators, p.Email)
	}
	v.Tenant = platformTenant(platform)
	var rows []sql.OwnAlertChannelsRow
	if !v.Tenant.IsZero() {
		if rows, err = q.OwnAlertChannels(ctx, v.Tenant); err != nil {
			return v, err
		}
	}
	all := map[id.UUID]bool{}
	for _, k := range incidents.AlertKinds() {
		line := OperatorAlertKind{Kind: k, Muted: !settings.On(k.Setting(), platform)}
		for _, r := range rows {
			if !filter.MatchType(r.EventTypes, k.EventType()) {
				continue
			}
			c := show.AlertChannel{ID: r.ID, Name: cmp.Or(r.Description, egress.Mask(r.URL))}
			line.Channels = append(line.Channels, c)
			if !all[r.ID] {
				all[r.ID] = true
				v.Channels = append(v.Channels, c)
			}
		}
		v.Kinds = append(v.Kinds, line)
	}
	return v, nil
}
