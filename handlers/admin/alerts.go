package admin

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/endpoints"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/show"
	"posthorn/domain/transform"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
	"posthorn/views/pages"
)

const (
	alertsPath = Root + "/alerts"
	// alertsListed is how many alerts the page lists.
	alertsListed = 50
	// mostDescription is what an input takes; endpoint.Check has the rule.
	mostDescription = 500
)

// alertsView is where alerts are sent, which are open, and the form of a channel.
func (a *admin) alertsView(c *handlers.Call, typed url.Values, wrong map[string]string) (v console.AlertsView, err error) {
	var found accounts.OperatorAlerts
	states := map[id.UUID]endpoints.WaitingLane{}
	err = a.DB.Console(c.Ctx(), func(q *db.Tx) (err error) {
		if found, err = accounts.ReadOperatorAlerts(c.Ctx(), q); err != nil {
			return err
		}
		if v.Alerts, err = accounts.ListPlatformAlerts(c.Ctx(), q, alertsListed); err != nil {
			return err
		}
		if len(found.Channels) > 0 {
			ids := make([]id.UUID, len(found.Channels))
			for i, ch := range found.Channels {
				ids[i] = ch.ID
			}
			states, err = endpoints.Conditions(c.Ctx(), q, &found.Tenant, ids)
		}
		return err
	})
	if err != nil {
		return v, err
	}
	v.Root, v.Operators, v.Wrong = alertsPath, found.Operators, wrong
	if !found.Tenant.IsZero() {
		v.Tenant = tenantPath(found.Tenant)
	}
	for _, k := range found.Kinds {
		v.Kinds = append(v.Kinds, console.AlertKindLine{Kind: k.Kind, Muted: k.Muted, Channels: k.Channels})
	}
	for _, ch := range found.Channels {
		shown := id.Endpoint.Format(ch.ID)
		v.Channels = append(v.Channels, console.ChannelLine{
			AlertChannel: ch,
			Shown:        shown,
			Condition:    states[ch.ID].Condition,
			Deliveries:   Root + "/deliveries?" + url.Values{"tenant": {id.Tenant.Format(found.Tenant)}, "endpoint": {shown}}.Encode(),
		})
	}
	v.Typed = typed
	v.Description = components.FieldProps{
		Name:        "description",
		Label:       "Name",
		Optional:    true,
		MaxLength:   mostDescription,
		Value:       typed.Get("description"),
		Error:       wrong["description"],
		Placeholder: "On-call",
	}
	v.URL = components.FieldProps{
		Name:        "url",
		Label:       "URL",
		Type:        "url",
		Mono:        true,
		Required:    true,
		Value:       typed.Get("url"),
		Error:       wrong["url"],
		Placeholder: "https://events.pagerduty.com/v2/enqueue",
		Hint:        "Where the receiver gets webhooks.",
	}
	return v, nil
}

// showAlerts shows the alerts of the platform, and where each kind is sent.
func (a *admin) showAlerts(c *handlers.Call) error {
	v, err := a.alertsView(c, nil, nil)
	if err != nil {
		return err
	}
	var made newChannel
	if _, err := c.TakeOnce(alertsPath, &made); err != nil {
		return err
	}
	v.NewSecret, v.NewKey = made.Secret, made.Key
	v.Shell = c.Shell("Alerts", "alerts")
	return c.Render(http.StatusOK, console.Alerts(v))
}

// newChannel is what a session keeps until the next page shows it.
type newChannel struct {
	Secret string
	Key    string // of the platform's own tenant, if the channel was the reason to create it
}

// addChannel creates an endpoint of the platform's own tenant that gets its alerts. The next page shows its secret
// once.
func (a *admin) addChannel(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	settings, err := channelOf(form)
	if err == nil {
		settings, err = settings.Check(a.Egress)
	}
	var made newChannel
	if err == nil {
		made, err = a.createChannel(c, settings)
	}
	if err == nil {
		if err := c.KeepOnce(alertsPath, made); err != nil {
			return err
		}
		return c.Done(alertsPath, "Channel added. It gets alerts once its receiver has responded to the verification.")
	}
	if not := handlers.NotInput(err); not != nil {
		return not
	}
	v, failed := a.alertsView(c, form, handlers.WrongFields(err))
	if failed != nil {
		return failed
	}
	v.Shell = c.Shell("Alerts", "alerts")
	return c.Render(handlers.Status(err), console.Alerts(v))
}

// channelOf are the settings of a new channel.
func channelOf(form url.Values) (endpoint.Settings, error) {
	s := endpoint.ReadDefaults(0, nil, nil).Settings.ForAlerts(incidents.AlertPrefix + "*")
	s.Kind, s.URL, s.Description = endpoint.HTTP, strings.TrimSpace(form.Get("url")), form.Get("description")
	preset, ok := transform.PresetNamed(form.Get("preset"))
	if !ok {
		return s, nil
	}
	variables := map[string]string{}
	for _, v := range preset.Variables {
		variables[v.Name] = form.Get(pages.PresetField(preset.Name, v.Name))
	}
	raw, err := json.Marshal(map[string]any{"preset": preset.Name, "variables": variables})
	if err != nil {
		return s, err
	}
	return s, s.Patch(map[string]json.RawMessage{"transformation": raw})
}

func (a *admin) createChannel(c *handlers.Call, s endpoint.Settings) (made newChannel, err error) {
	tenant, key, err := accounts.EnsurePlatformTenant(c.Ctx(), a.DB, c.Author())
	if err != nil {
		return made, err
	}
	made.Key = key
	var r endpoint.SecretRequest
	_, _ = rand.Read(r.Random[:]) // never fails (crypto/rand)
	n := endpoints.New{Settings: s}
	if n.Secret, err = r.Secret(s.Wire(), false); err != nil {
		return made, err
	}
	made.Secret = n.Secret.Text
	return made, a.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) error {
		defaults, err := endpoints.Defaults(c.Ctx(), q, tenant, a.EndpointsPerTenant)
		if err != nil {
			return err
		}
		n.Limit = defaults.MaxEndpoints
		_, err = a.editor(c).Create(c.Ctx(), q, tenant, n)
		return err
	})
}

func (a *admin) editor(c *handlers.Call) endpoints.Editor {
	return endpoints.Editor{Keys: a.Keys, By: c.Author()}
}

// removeChannel deletes a channel. If somebody else deleted it, both see that it is deleted.
func (a *admin) removeChannel(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var channels []show.AlertChannel
	var tenant id.UUID
	err := a.DB.Console(c.Ctx(), func(q *db.Tx) error {
		found, err := accounts.ReadOperatorAlerts(c.Ctx(), q)
		channels, tenant = found.Channels, found.Tenant
		return err
	})
	if err != nil {
		return err
	}
	for _, ch := range channels {
		if ch.ID != endpointID {
			continue
		}
		err := a.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) error {
			return a.editor(c).Remove(c.Ctx(), q, tenant, endpointID)
		})
		if err != nil && !db.IsMissing(err) {
			return err
		}
		return c.Done(alertsPath, "Channel deleted: "+ch.Name+".")
	}
	return fault.New(fault.NotFound, fault.ErrNotFound.Code, "Alert channel not found.")
}

// muteAlerts mutes a kind of alerts for mail and channels, or ends its mute.
func (a *admin) muteAlerts(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	kind, to := incidents.Kind(form.Get("kind")), ""
	if !kind.Alerts() {
		return fault.ErrNotFound
	}
	if form.Get("muted") == "true" {
		to = "off"
	}
	_, err = accounts.ChangePlatform(c.Ctx(), a.DB, accounts.PlatformChange{Texts: map[string]string{kind.Setting(): to}}, c.Author())
	if err != nil {
		return err
	}
	if to != "" {
		return c.Done(alertsPath, "Muted. These alerts are only on this page.")
	}
	return c.Done(alertsPath, "Unmuted.")
}
