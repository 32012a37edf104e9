package pages

import (
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// NoticesView lists a tenant's notices.
type NoticesView struct {
	Shell     layout.Shell
	Root      string
	Filter    NoticeFilter
	Kinds     []components.Option
	Endpoints []components.Option
	Wrong     map[string]string
	Reads     bool // the actor is a member, who can mark notices as read
	Rows      []show.Notice
	First     string
	Older     string
}

// NoticeFilter is the filter of the list.
type NoticeFilter struct {
	Kind, Endpoint string
	Unread         bool
}

func (v NoticesView) kinds() []components.Option {
	return append([]components.Option{{Value: "", Label: "Any kind"}}, v.Kinds...)
}

func unreadOptions() []components.Option {
	return []components.Option{{Value: "", Label: "Read and unread"}, {Value: "true", Label: "Unread"}}
}

func (f NoticeFilter) unread() string {
	if f.Unread {
		return "true"
	}
	return ""
}

// newest is the newest notice that is unread; empty: all are read.
func (v NoticesView) newest() string {
	for _, n := range v.Rows {
		if n.Unread {
			return id.Notice.Format(n.ID)
		}
	}
	return ""
}

// noticeLine is a notice in words.
type noticeLine struct{ About, Detail, Link string }

func (v NoticesView) line(n show.Notice) (l noticeLine) {
	var delivery string
	l.About, l.Detail, delivery = n.About()
	switch {
	case delivery != "":
		l.Link = v.Root + "/deliveries/" + delivery
	case n.Endpoint != nil:
		l.Link = v.Root + "/endpoints/" + id.Endpoint.Format(*n.Endpoint)
	}
	return l
}

func noticeTone(n show.Notice) components.Tone {
	switch n.Kind.Severity() {
	case notice.Critical:
		return components.Bad
	case notice.Warning:
		return components.Warning
	}
	return components.Info
}
