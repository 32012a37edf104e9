// Package docs shows the documentation: the pages of docs/, and the API's reference made from the OpenAPI document. All of
// it is rendered once, when it is first asked for, and is the same for everybody.
package docs

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/a-h/templ"

	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/handlers/api"
	views "posthorn/views/docs"
)

// Deps is what the pages are made of.
type Deps struct {
	BaseURL   string    // of this server, for the examples
	Catalogue Catalogue // nil: there is none
}

type site struct {
	Deps
	content func() (*content, error)
}

// content is everything that there is to show, rendered.
type content struct {
	frame  views.Frame // without title and path
	guides map[string]guide
	errors map[string]templ.Component // by code
	front  views.Front
	groups map[string]views.Group
	json   []byte
}

// Routes is the route table of the documentation. Everybody may read it.
func Routes(d Deps) []handlers.Route {
	s := &site{Deps: d}
	s.content = sync.OnceValues(s.load)
	var routes []handlers.Route
	for path, handler := range map[string]handlers.Handler{
		"/docs":              s.front,
		"/docs/api/:group":   s.group,
		"/docs/errors/:code": s.problem,
		"/docs/catalogue":    s.showCatalogue,
		"/docs/:page":        s.guide,
		"/docs/adr/:page":    s.folder("adr"),
		"/docs/ops/:page":    s.folder("ops"),
		"/api/openapi.yaml":  s.yaml,
		"/api/openapi.json":  s.json,
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			routes = append(routes, handlers.Route{Method: method, Path: path, Access: handlers.Access{Public: true}, Handler: handler})
		}
	}
	return routes
}

func (s *site) load() (*content, error) {
	c := &content{}
	var err error
	if c.guides, err = loadGuides(); err != nil {
		return nil, err
	}
	if c.errors, err = loadErrors(); err != nil {
		return nil, err
	}
	doc, err := readContract(api.Contract)
	if err != nil {
		return nil, err
	}
	groups, err := doc.reference(s.BaseURL)
	if err != nil {
		return nil, err
	}
	c.groups = map[string]views.Group{}
	for _, g := range groups {
		c.groups[g.Path] = g
		c.frame.Tags = append(c.frame.Tags, views.Link{Label: g.Name, Path: g.Path})
	}
	c.frame.Guides = navigation(c.guides)
	c.front = views.Front{Intro: prose(doc.text("info", "description")), Groups: groups, Problems: words(get(doc.root, "x-problems"))}
	c.json, err = json.Marshal(doc.plain())
	return c, err
}

// show renders a page.
func (s *site) show(call *handlers.Call, title string, page func(*content) (templ.Component, bool)) error {
	c, err := s.content()
	if err != nil {
		return err
	}
	body, found := page(c)
	if !found {
		return fault.New(fault.NotFound, "no_such_path", "There is no such page. The documentation begins at /docs.")
	}
	f := c.frame
	f.Title, f.Path, f.Theme = title, call.Request.URL.Path, handlers.Theme(call.Request)
	return call.Render(http.StatusOK, views.Page(f, body))
}

func (s *site) front(call *handlers.Call) error {
	_, on, err := s.types(call.Ctx())
	if err != nil {
		on = false // the documentation is there although the database is away
	}
	return s.show(call, "API", func(c *content) (templ.Component, bool) {
		front := c.front
		front.Catalogue = on
		return views.FrontPage(front), true
	})
}

func (s *site) group(call *handlers.Call) error {
	path := groupRoot + call.Param("group")
	return s.show(call, call.Param("group"), func(c *content) (templ.Component, bool) {
		g, ok := c.groups[path]
		return views.GroupPage(g), ok
	})
}

func (s *site) guide(call *handlers.Call) error { return s.page(call, call.Param("page")) }

func (s *site) folder(name string) handlers.Handler {
	return func(call *handlers.Call) error { return s.page(call, name+"/"+call.Param("page")) }
}

func (s *site) page(call *handlers.Call, name string) error {
	c, err := s.content()
	if err != nil {
		return err
	}
	return s.show(call, c.guides[name].title, func(c *content) (templ.Component, bool) {
		g, ok := c.guides[name]
		return views.Prose(views.Text{Body: g.body}), ok
	})
}

func (s *site) problem(call *handlers.Call) error {
	code := call.Param("code")
	return s.show(call, code, func(c *content) (templ.Component, bool) {
		body, ok := c.errors[code]
		return views.Prose(views.Text{Body: body}), ok
	})
}

func (s *site) yaml(call *handlers.Call) error {
	call.Data(http.StatusOK, "application/yaml", api.Contract)
	return nil
}

func (s *site) json(call *handlers.Call) error {
	c, err := s.content()
	if err != nil {
		return err
	}
	call.Data(http.StatusOK, "application/json", c.json)
	return nil
}
