package admin

import (
	"net/http"
	"net/url"
	"strconv"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/fault"
	"posthorn/domain/settings"
	"posthorn/domain/show"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/console"
)

// settingGroups arranges fields by group. The placeholder of a number that nobody has set is the value in effect.
func settingGroups(fields []settings.Field, own []byte, above ...[]byte) []console.SettingGroup {
	var groups []console.SettingGroup
	for _, name := range settings.Groups() {
		g := console.SettingGroup{Title: name}
		for _, f := range fields {
			if f.Group == name {
				g.Fields = append(g.Fields, settingField(f, own, above...))
			}
		}
		if len(g.Fields) > 0 {
			groups = append(groups, g)
		}
	}
	return groups
}

func settingField(f settings.Field, own []byte, above ...[]byte) console.SettingField {
	text, _ := f.Own(own)
	holds := f.Value(above...)
	out := console.SettingField{FieldProps: components.FieldProps{
		ID:    "set-" + f.Name,
		Name:  f.Name,
		Label: f.Label,
		Hint:  f.Hint,
		Value: text,
	}}
	if f.Words != nil {
		out.Options = []components.Option{{Value: "", Label: "Default: " + holds, Selected: text == ""}}
		for _, word := range f.Words {
			out.Options = append(out.Options, components.Option{
				Value:    word,
				Label:    components.Capital(word),
				Selected: word == text,
			})
		}
		return out
	}
	out.Type, out.Unit, out.Width, out.Min, out.Max, out.Placeholder = "number", f.Unit, "medium", strconv.Itoa(f.Low),
		strconv.Itoa(f.High), holds
	if f.Zero != "" {
		out.Min = "0"
		if out.Hint != "" {
			out.Hint += " "
		}
		out.Hint += "0: " + f.Zero + "."
		if holds == "0" {
			out.Placeholder = f.Zero
		}
	}
	return out
}

// settingTexts are labels and hints of some fields.
func settingTexts(form url.Values, fields []settings.Field) map[string]string {
	texts := map[string]string{}
	for _, f := range fields {
		if form.Has(f.Name) {
			texts[f.Name] = form.Get(f.Name)
		}
	}
	return texts
}

// retype shows the typed values again, with what is wrong with them.
func retype(groups []console.SettingGroup, form url.Values, wrong map[string]string) {
	for _, g := range groups {
		for i := range g.Fields {
			f := &g.Fields[i]
			if form.Has(f.Name) {
				f.Value, f.Error = form.Get(f.Name), wrong[f.Name]
				for j := range f.Options {
					f.Options[j].Selected = f.Options[j].Value == f.Value
				}
			}
		}
	}
}

func (a *admin) settingsView(c *handlers.Call) (v console.SettingsView, err error) {
	raw, err := accounts.Platform(c.Ctx(), a.DB)
	if err != nil {
		return v, err
	}
	return console.SettingsView{Groups: settingGroups(settings.Fields(), raw), Seen: accounts.Version(string(raw))}, nil
}

func (a *admin) showSettings(c *handlers.Call) error {
	v, err := a.settingsView(c)
	if err != nil {
		return err
	}
	v.Shell = c.Shell("Settings", "settings")
	return c.Render(http.StatusOK, console.Settings(v))
}

// changeSettings saves the platform's settings. If two operators save together, one does, and the other sees the
// current values.
func (a *admin) changeSettings(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	_, err = accounts.ChangePlatform(c.Ctx(), a.DB, accounts.PlatformChange{
		Seen:  form.Get("seen"),
		Texts: settingTexts(form, settings.Fields()),
	}, c.Author())
	if err == nil {
		return c.Done(Root+"/settings", "Settings saved.")
	}
	if not := handlers.NotInput(err); not != nil {
		return not
	}
	v, failed := a.settingsView(c)
	if failed != nil {
		return failed
	}
	v.Wrong = handlers.WrongFields(err)[""]
	if fault.Is(err, accounts.ErrChanged.Code) {
		v.Wrong = accounts.ErrChanged.Detail
	} else {
		retype(v.Groups, form, handlers.WrongFields(err))
	}
	v.Shell = c.Shell("Settings", "settings")
	return c.Render(handlers.Status(err), console.Settings(v))
}

// tenantLimits is the form for a tenant's limits and retention.
func tenantLimits(t show.Tenant, platform []byte) console.LimitsForm {
	f := console.LimitsForm{
		Groups: settingGroups(settings.OfTenant(), t.Settings, platform),
		Seen:   accounts.TenantVersion(t),
		Retention: components.FieldProps{
			Name:     "retention_days",
			Label:    "Keep events and deliveries for",
			Type:     "number",
			Unit:     "days",
			Width:    "medium",
			Required: true,
			Min:      "1",
			Max:      strconv.Itoa(maxRetention),
			Value:    strconv.Itoa(t.RetentionDays),
			Hint:     "Older data is hidden immediately and then permanently deleted.",
		},
	}
	return f
}

var errBeyond = &fault.Error{Kind: fault.Conflict, Code: accounts.ErrChanged.Code, Detail: "A shorter retention period deletes events. Confirm to continue."}

// maxRetention is the longest retention of a tenant in days, as in the schema.
const maxRetention = 3650

// changeLimits saves a tenant's limits.
func (a *admin) changeLimits(c *handlers.Call) error {
	w, err := readTenantForm(c)
	if err != nil {
		return err
	}
	days, notDays := strconv.Atoi(w.Get("retention_days"))
	if notDays != nil || days < 1 || days > maxRetention {
		err = fault.InvalidField("retention_days", "out_of_range", "Enter a number of days from 1 to 3650.")
	}
	lost := int64(0)
	if err == nil {
		err = a.DB.Console(c.Ctx(), func(q *db.Tx) error {
			if w.Get("delete_beyond") != strconv.Itoa(days) {
				if lost, err = accounts.EventsBeyond(c.Ctx(), q, w.tenant, days, a.Now()); err != nil || lost > 0 {
					return err
				}
			}
			_, err := accounts.ChangeTenant(c.Ctx(), q, w.tenant, accounts.TenantChange{
				RetentionDays: &days,
				Limits:        settingTexts(w.Values, settings.OfTenant()),
				Seen:          w.Get("seen"),
			}, c.Author())
			return err
		})
	}
	if err == nil && lost > 0 { // it asks first
		return a.refuseTenant(c, errBeyond, func(v *console.TenantView, _ map[string]string) {
			v.Limits.Beyond, v.Limits.Lost, v.Limits.Retention.Value = days, handlers.BeyondText(lost, days), w.Get("retention_days")
			retype(v.Limits.Groups, w.Values, nil)
		})
	}
	if err == nil {
		return c.Done(tenantPath(w.tenant), "Settings saved.")
	}
	if not := handlers.NotInput(err); not != nil {
		return gone(not)
	}
	return a.refuseTenant(c, err, func(v *console.TenantView, fields map[string]string) {
		v.Limits.Wrong = fields[""]
		if fault.Is(err, accounts.ErrChanged.Code) {
			v.Limits.Wrong = accounts.ErrChanged.Detail
			return
		}
		v.Limits.Retention.Value, v.Limits.Retention.Error = w.Get("retention_days"), fields["retention_days"]
		retype(v.Limits.Groups, w.Values, fields)
	})
}
