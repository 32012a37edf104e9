package docs

import (
	"fmt"
	"slices"
	"strings"

	views "posthorn/views/docs"
)

// chapter is a section of the navigation: guides for one kind of reader, in reading order.
type chapter struct {
	title  string
	guides []string
}

const referenceTitle = "API reference"

// chapters contain every guide, as a test checks. Pages that cite a decision link to it (adr/).
var chapters = []chapter{
	{"Get started", []string{"quickstart", "authentication", "portal", "sso"}},
	{"Send events", []string{"program", "filters", "transformations", "batches", "kafka", "rabbitmq", "sqs", "s3", "feeds", "mcp", "health", "replay", "outbox", "sources", "declarative", "migrate", "svix"}},
	{"Receive webhooks", []string{"verify", "public-signatures", "receiver-auth", "mtls", "bot-filters", "delivery", "cli"}},
	{referenceTitle, []string{"errors"}},
	{"Operate Posthorn", []string{
		"ops/README", "ops/deploy", "ops/scale", "ops/sizing", "ops/monitoring", "ops/tracing", "ops/console", "ops/control", "ops/egress", "ops/backup", "ops/ha", "ops/upgrade", "ops/homes", "ops/history", "ops/keys", "mail", "alerts", "status",
	}},
	{"How it works", []string{"design", "performance", "scale"}},
}

func (c *content) link(name string) views.Link {
	return views.Link{Label: c.guides[name].title, Path: "/docs/" + name}
}

// sections are the navigation: the guides by reader, and the reference with every operation.
func (c *content) sections() ([]views.Section, error) {
	var all []views.Section
	for _, ch := range chapters {
		s := views.Section{Title: ch.title}
		if ch.title == referenceTitle {
			s.Links, s.Groups = append(s.Links, views.Link{Label: "Overview", Path: referencePage}), c.groups
		}
		for _, name := range ch.guides {
			if _, ok := c.guides[name]; !ok {
				return nil, fmt.Errorf("there is no page docs/%s.md", name)
			}
			s.Links = append(s.Links, c.link(name))
		}
		all = append(all, s)
	}
	return all, nil
}

// sequence lists all pages of the navigation in their order, for "previous" and "next".
func sequence(sections []views.Section) []views.Link {
	list := []views.Link{{Label: "Documentation", Path: "/docs"}}
	for _, s := range sections {
		list = append(list, s.Links...)
		for _, g := range s.Groups {
			list = append(list, views.Link{Label: g.Title(), Path: g.Path})
			for _, o := range g.Operations {
				list = append(list, views.Link{Label: o.Summary, Path: o.Page})
			}
		}
	}
	return list
}

// place fills in the frame of the page at a path.
func (c *content) place(f *views.Frame, path string) {
	f.Path = path
	if at := slices.IndexFunc(c.order, func(l views.Link) bool { return l.Path == path }); at >= 0 {
		if at > 0 {
			f.Previous = c.order[at-1]
		}
		if at+1 < len(c.order) {
			f.Next = c.order[at+1]
		}
	}
	if p, ok := c.pages[path]; ok {
		f.Markdown, f.Description = path+markdownEnd, p.about
	}
}

// landing is the first page, with an entry for each kind of reader.
func (c *content) landing() views.Landing {
	doors := []views.Door{
		{
			Title: "Send events",
			Text:  "Your product emits events with an API key; Posthorn delivers them to your customers.",
			Links: []views.Link{
				{Label: "Quickstart", Path: "/docs/quickstart"},
				c.link("authentication"), c.link("portal"), c.link("program"), c.link("filters"), c.link("replay"),
				{Label: referenceTitle, Path: referencePage},
			},
		},
		{
			Title: "Receive webhooks",
			Text:  "Verify signatures, respond in time, and handle duplicates and order.",
			Links: []views.Link{
				c.link("verify"), c.link("delivery"), {Label: "Webhooks on your own machine", Path: "/docs/cli#webhooks-on-your-own-machine"},
			},
		},
		{
			Title: "Operate Posthorn",
			Text:  "Deploy, monitor, back up, and upgrade a server.",
			Links: []views.Link{
				c.link("ops/README"), c.link("ops/deploy"), c.link("ops/monitoring"), c.link("ops/backup"), c.link("ops/upgrade"), c.link("performance"),
			},
		},
	}
	return views.Landing{Doors: doors}
}

// cut cuts a text after a word, at n bytes or before.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = text[:n]
	if i := strings.LastIndexByte(text, ' '); i > 0 {
		text = text[:i]
	}
	return strings.ToValidUTF8(text, "") + "…"
}
