package pages

import (
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/source"
	"posthorn/domain/words"
	"posthorn/views/components"
	"posthorn/views/icons"
	"posthorn/views/layout"
)

// SourcesView is the list of sources.
type SourcesView struct {
	Shell        layout.Shell
	Root         string
	Rows         []show.Source
	Newer, Older string
}

// SourceForm holds the fields of a source.
type SourceForm struct {
	Name, Kind, Start, Mapping string
	ConnectionForm
}

// NewSourceView is the form of a new source.
type NewSourceView struct {
	Shell layout.Shell
	Root  string
	Form  SourceForm
}

// SourceView is the page of a source.
type SourceView struct {
	Shell    layout.Shell
	Root     string // of the sources
	Source   show.Source
	Form     SourceForm
	Sample   string // a message that the mapping is tried on, as JSON; empty: one is received
	Tried    *SourceTriedView
	Rejected []show.Rejected
	More     bool // more messages were rejected than are shown
}

// SourceTriedView is what a mapping makes of a message.
type SourceTriedView struct {
	Empty                   bool // the queue has no message
	Message, Event, Problem string
}

func sourcePath(root string, s show.Source) string { return root + "/" + id.Source.Format(s.ID) }

func (v SourceView) href() string { return sourcePath(v.Root, v.Source) }

// sourceTone is the tone and the word of a source's status.
func sourceTone(s source.State) (components.Tone, string) {
	switch s.Status() {
	case source.Paused:
		return components.Neutral, string(source.Paused)
	case source.Failing:
		return components.Bad, string(source.Failing)
	}
	return components.Good, string(source.Active)
}

// waitingText is how many messages wait in the broker.
func waitingText(s source.State) string {
	if s.Waiting == nil {
		return "—"
	}
	return words.Number(*s.Waiting)
}

func sourceKinds() []components.Option {
	return []components.Option{
		{Value: string(endpoint.Kafka), Label: "Kafka topic"},
		{Value: string(endpoint.RabbitMQ), Label: "RabbitMQ queue"},
		{Value: string(endpoint.SQS), Label: "Amazon SQS queue"},
	}
}

func sourceKind(k endpoint.Kind) string {
	for _, o := range sourceKinds() {
		if o.Value == string(k) {
			return o.Label
		}
	}
	return string(k)
}

func sourceStarts() []components.Option {
	return []components.Option{{Value: source.Oldest, Label: "The oldest record"}, {Value: source.Newest, Label: "New records"}}
}

// mappingProps are the properties of the field of the mapping.
func (f SourceForm) mappingProps() components.FieldProps {
	return components.FieldProps{
		Name:        "mapping",
		Label:       "Mapping",
		Value:       f.Mapping,
		Mono:        true,
		Rows:        6,
		Placeholder: `{"type": "order." + body.status, "key": body.customer_id, "data": body}`,
		Error:       f.Wrong["mapping"],
		Hint:        "CEL over body and message that makes an event, as POST /events takes it. body alone: the message is the event.",
	}
}

// summary lists all errors, for the head of the form.
func (f SourceForm) summary() []components.Wrong { return EndpointForm{Wrong: f.Wrong}.summary() }

// connectionSummary is what is wrong with the connection alone.
func (f SourceForm) connectionSummary() []components.Wrong {
	other := EndpointForm{Wrong: map[string]string{}}
	for name, detail := range f.Wrong {
		if name != "mapping" && name != "sample" {
			other.Wrong[name] = detail
		}
	}
	return other.summary()
}

// messageActions are what can be done with a rejected message.
func (v SourceView) messageActions(r show.Rejected) []components.MenuItem {
	rejected := id.Event.Format(r.ID)
	items := []components.MenuItem{{Label: "Show and try", Icon: icons.Eye, Href: v.href() + "?rejected=" + rejected}}
	if v.Shell.Looks() {
		return items
	}
	return append(items,
		components.MenuItem{Label: "Retry message", Icon: icons.Refresh, Action: v.href() + "/rejected/" + rejected + "/retry"},
		components.MenuItem{Label: "Discard message", Icon: icons.Trash, Opens: "discard-" + rejected, Danger: true})
}
