package cli

import (
	"context"
	"slices"
	"strings"

	"posthorn/client"
	"posthorn/domain/filter"
	"posthorn/domain/notice"
)

type alertsCommands struct {
	List   alertListCommand   `cmd:"" help:"List the kinds of notices, their channels, and which are muted."`
	Mute   alertMuteCommand   `cmd:"" help:"Send notices of some kinds neither by email nor to channels."`
	Unmute alertUnmuteCommand `cmd:"" help:"Send notices of some kinds again."`
}

// alertRow is where notices of a kind are sent.
type alertRow struct {
	Kind     string   `json:"kind"`
	Label    string   `json:"label"`
	Severity string   `json:"severity"`
	Muted    bool     `json:"muted"`
	Channels []string `json:"channels"` // ids of endpoints
}

type alertListCommand struct{ shared }

// Run lists the kinds of notices.
func (c alertListCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	t, err := sdk.GetOwnTenant(ctx)
	if err != nil {
		return err
	}
	rows := alertRows(mutedIn(t))
	for ep, err := range sdk.Endpoints(ctx, client.ListEndpointsParams{}) {
		if err != nil {
			return err
		}
		for i, r := range rows {
			if filter.MatchType(ep.EventTypes, notice.Kind(r.Kind).EventType()) {
				rows[i].Channels = append(rows[i].Channels, ep.ID)
			}
		}
	}
	return c.show(e, rows, func() { e.alerts(rows) })
}

// alertTarget are the kinds that a command is about.
type alertTarget struct {
	shared
	Kinds []string `arg:"" name:"kind" help:"Kinds of notices, such as secret.rotated. digest is the daily digest."`
}

type alertMuteCommand struct{ alertTarget }

// Run mutes kinds.
func (c alertMuteCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return c.change(ctx, e, sdk, true)
}

type alertUnmuteCommand struct{ alertTarget }

// Run ends the mutes of kinds.
func (c alertUnmuteCommand) Run(ctx context.Context, e *Env, sdk *client.Client) error {
	return c.change(ctx, e, sdk, false)
}

func (c alertTarget) change(ctx context.Context, e *Env, sdk *client.Client, muted bool) error {
	t, err := sdk.GetOwnTenant(ctx)
	if err != nil {
		return err
	}
	was := mutedIn(t)
	to := was
	for _, name := range c.Kinds {
		kind := notice.Kind(strings.TrimPrefix(name, notice.AlertPrefix))
		if !kind.Known() {
			return fail(ExitUsage, "%q is not a kind of notice. `posthorn alerts list` lists them.", name)
		}
		to = to.Mute(kind, muted)
	}
	list := []client.NoticeKind{}
	for _, k := range to.Muted {
		list = append(list, client.NoticeKind(k))
	}
	patch := client.TenantPatch{MutedNotices: &list}
	if to.NoDigest != was.NoDigest {
		patch.Digest = new(!to.NoDigest)
	}
	if t, err = sdk.UpdateOwnTenant(ctx, patch); err != nil {
		return err
	}
	rows := slices.DeleteFunc(alertRows(mutedIn(t)), func(r alertRow) bool { return !r.Muted })
	return c.show(e, rows, func() {
		if len(rows) == 0 {
			e.printf("No kind of notice is muted.\n")
			return
		}
		e.printf("Muted: %s.\n", strings.Join(names(rows), ", "))
	})
}

func names(rows []alertRow) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = r.Kind
	}
	return out
}

// mutedIn are a tenant's mutes.
func mutedIn(t client.Tenant) notice.Settings {
	s := notice.Settings{NoDigest: !t.Digest}
	for _, k := range t.MutedNotices {
		s.Muted = append(s.Muted, notice.Kind(k))
	}
	return s
}

func alertRows(mutes notice.Settings) (rows []alertRow) {
	for _, k := range notice.Kinds() {
		rows = append(rows, alertRow{
			Kind:     string(k),
			Label:    k.Label(),
			Severity: string(k.Severity()),
			Muted:    mutes.Mutes(k),
			Channels: []string{},
		})
	}
	return rows
}

func (e *Env) alerts(rows []alertRow) {
	lines := make([][]string, len(rows))
	for i, r := range rows {
		sent, channels := "yes", "-"
		if r.Muted {
			sent = "muted"
		}
		if len(r.Channels) > 0 {
			channels = strings.Join(r.Channels, ",")
		}
		lines[i] = []string{r.Kind, r.Severity, sent, channels, r.Label}
	}
	e.table([]string{"KIND", "SEVERITY", "SENT", "CHANNELS", "NOTICE"}, lines)
}
