package pages

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	"posthorn/domain/bulk"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// DeliveriesView is a page of a tenant's deliveries.
type DeliveriesView struct {
	Shell     layout.Shell
	Root      string // the tenant's path
	Now       time.Time
	Filter    DeliveryFilter
	Endpoints []components.Option // to choose from
	Types     []string            // suggestions; others can be typed
	Wrong     map[string]string   // the filter's errors, by field
	List      DeliveryListView
	Newer     string // the pages before and after; empty: none
	Older     string
	Short     bool // the page ended early: the filter rarely matches
	Stored    StoredDays

	Of *EndpointHead // the endpoint of a list of one endpoint; its tabs link back
}

// header is the head of the page: the endpoint's, if the list is of one.
func (v DeliveriesView) header() components.HeaderProps {
	if v.Of == nil {
		return components.HeaderProps{Title: "Deliveries", Text: "Every event sent to every subscribed endpoint."}
	}
	return components.HeaderProps{
		Title:  v.Of.title(),
		Text:   v.Of.subtitle(),
		Crumbs: []components.Crumb{{Label: "Endpoints", Href: v.Of.Root + "/endpoints"}},
		Badge:  components.Condition(v.Of.Endpoint.Condition.Shown()),
	}
}

// DeliveryFilter is the filter of a list, as in the address.
type DeliveryFilter struct {
	Search, Status, Type, Endpoint, Channel, Since, Until, Wait, Job, Batch string
	Archived                                                                bool
}

// Empty reports whether no filter is set.
func (f DeliveryFilter) Empty() bool { return f == DeliveryFilter{} }

// DeliveryListView is the part of the page that is refreshed.
type DeliveryListView struct {
	Root  string
	Here  string // the page's own address without a position, for newer deliveries
	Live  string // the address of the refreshed part; empty: it is not refreshed
	News  int    // deliveries that are newer than the page
	Many  bool   // there are more than News
	Rows  []show.Delivery
	Acts  bool           // the actor can act on deliveries
	Plain DeliveryFilter // for actions on all results
}

// DeliveryTable is a table of deliveries. Operators see the same one as members, with the tenants.
type DeliveryTable struct {
	Rows    []show.Delivery
	Root    string // the path of the tenant's pages; empty: the console
	Tenants bool
	Select  bool // rows can be selected
}

// root is the path of the pages of a delivery's tenant.
func (t DeliveryTable) root(d show.Delivery) string {
	if t.Root != "" {
		return t.Root
	}
	return "/console/tenants/" + id.Tenant.Format(d.TenantID)
}

// endpointPlace is where a narrow row names the endpoint: below the tenant, where that is named.
func (t DeliveryTable) endpointPlace() string {
	if t.Tenants {
		return "more"
	}
	return "second"
}

func (t DeliveryTable) path(d show.Delivery, of id.UUID) string {
	return t.root(d) + "/deliveries/" + id.Delivery.Format(of)
}

func (l DeliveryListView) news() string {
	if l.Many {
		return strconv.Itoa(l.News) + "+ new deliveries"
	}
	return components.Many(int64(l.News), "new delivery", "new deliveries")
}

// statusLabels are the words of the filter by status.
var statusLabels = map[string]string{
	delivery.OnHold:     "On hold",
	delivery.DeadLetter: "Dead letter (not replayed)",
	delivery.AllFailed:  "All problems",
}

// StatusOptions are the choices of a filter by status. What is held is on hold.
func StatusOptions() []components.Option {
	o := []components.Option{{Value: "", Label: "Any status"}}
	for _, word := range delivery.Selections() {
		if word != delivery.Held.String() {
			o = append(o, components.Option{Value: word, Label: cmp.Or(statusLabels[word], components.Sentence(word))})
		}
	}
	return o
}

// waitOptions are the reasons for which deliveries wait.
func waitOptions() []components.Option {
	o := []components.Option{{Value: "", Label: "Any"}}
	for _, r := range condition.Reasons() {
		o = append(o, components.Option{Value: string(r), Label: r.Word()})
	}
	return o
}

func endpointOptions(known []components.Option, chosen string) []components.Option {
	o := []components.Option{{Value: "", Label: "Any endpoint"}}
	found := chosen == ""
	for _, k := range known {
		found = found || k.Value == chosen
		o = append(o, k)
	}
	if !found {
		o = append(o, components.Option{Value: chosen, Label: components.ShortID(chosen)})
	}
	return o
}

// onlyListed reports whether a job can't have the filter: its results can only be selected.
func (f DeliveryFilter) onlyListed() bool { return f.Job != "" || f.Batch != "" || f.Wait != "" }

// fields are the filter as hidden fields of a form.
func (f DeliveryFilter) fields() map[string]string {
	out := map[string]string{}
	for name, value := range map[string]string{
		"status":   f.Status,
		"type":     f.Type,
		"endpoint": f.Endpoint,
		"channel":  f.Channel,
		"since":    f.Since,
		"until":    f.Until,
		"wait":     f.Wait,
		"job":      f.Job,
		"batch":    f.Batch,
	} {
		if value != "" {
			out[name] = value
		}
	}
	if f.Archived {
		out["archived"] = "true"
	}
	return out
}

// bulkKinds are the actions that fit the deliveries of the list.
func (f DeliveryFilter) bulkKinds() []bulk.Kind {
	if f.Archived {
		return []bulk.Kind{bulk.Replay, bulk.Unarchive}
	}
	switch s, known := delivery.ParseStatus(f.Status); {
	case f.Status == delivery.AllFailed, f.Status == delivery.DeadLetter:
		return []bulk.Kind{bulk.Replay, bulk.Archive}
	case f.Status == delivery.OnHold:
		return []bulk.Kind{bulk.Cancel}
	case !known:
		return []bulk.Kind{bulk.RetryNow, bulk.Cancel, bulk.Replay, bulk.Archive}
	case s == delivery.Held:
		return []bulk.Kind{bulk.Cancel}
	case s.Terminal():
		return []bulk.Kind{bulk.Replay, bulk.Archive}
	}
	return []bulk.Kind{bulk.RetryNow, bulk.Cancel}
}

// bulkLabel is the text of a kind's button.
func bulkLabel(k bulk.Kind) string { return components.Sentence(string(k)) }

// bulkMenu are the actions on all results of the filter. Each action requires a status: if the filter has none, the
// menu offers the most frequent actions. No action can be limited to a bulk job, to a batch,
// or to why deliveries wait.
func (v DeliveriesView) bulkMenu() []components.MenuItem {
	if v.Filter.onlyListed() || !v.List.Acts || len(v.Wrong) > 0 {
		return nil
	}
	item := func(label, status string, k bulk.Kind) components.MenuItem {
		fields := v.Filter.fields()
		fields["all"], fields["action"], fields["status"] = "true", string(k), status
		return components.MenuItem{Label: label + "…", Action: v.Root + "/deliveries/bulk", Fields: fields}
	}
	if v.Filter.Status == "" {
		failed := delivery.Failed.String()
		return []components.MenuItem{
			item("Replay all failed", failed, bulk.Replay), item("Archive all failed", failed, bulk.Archive),
			item("Retry all now", delivery.Retrying.String(), bulk.RetryNow), item("Cancel all on hold", delivery.OnHold, bulk.Cancel),
		}
	}
	var items []components.MenuItem
	for _, k := range v.Filter.bulkKinds() {
		items = append(items, item(bulkLabel(k)+" all results", v.Filter.Status, k))
	}
	return items
}

// presets are the most frequent filters. They keep the selected endpoint.
func (v DeliveriesView) presets() (out []components.Preset) {
	add := func(label string, f DeliveryFilter) {
		f.Endpoint = v.Filter.Endpoint
		q := url.Values{}
		for name, value := range f.fields() {
			q.Set(name, value)
		}
		p := components.Preset{Label: label, Href: v.Root + "/deliveries", Active: f == v.Filter}
		if len(q) > 0 {
			p.Href += "?" + q.Encode()
		}
		out = append(out, p)
	}
	add("All", DeliveryFilter{})
	add("Failed since yesterday", DeliveryFilter{Status: delivery.DeadLetter, Since: Yesterday(v.Now)})
	add("Dead letters", DeliveryFilter{Status: delivery.DeadLetter})
	add("Retrying", DeliveryFilter{Status: delivery.Retrying.String()})
	add("On hold", DeliveryFilter{Status: delivery.OnHold})
	return out
}

// failed reports whether the list is of failures.
func (v DeliveriesView) failed() bool {
	switch v.Filter.Status {
	case delivery.DeadLetter, delivery.AllFailed, delivery.Failed.String(), delivery.Retrying.String():
		return true
	}
	return false
}

// replayAll are the fields of a request to replay all results; nil if these are not failures.
func (v DeliveriesView) replayAll() map[string]string {
	if v.Filter.Status != delivery.DeadLetter || v.Filter.onlyListed() || !v.List.Acts ||
		len(v.Wrong) > 0 || len(v.List.Rows) == 0 {
		return nil
	}
	fields := v.Filter.fields()
	fields["all"], fields["action"] = "true", string(bulk.Replay)
	return fields
}

const bulkID = "deliveries-bulk"
