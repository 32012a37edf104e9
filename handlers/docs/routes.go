// Package docs serves the documentation: the pages of docs/, and the API's reference from the OpenAPI document. All of
// it is rendered once, at the first request, and is the same for everybody.
package docs

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"

	"posthorn/domain/fault"
	"posthorn/handlers"
	"posthorn/handlers/api"
	views "posthorn/views/docs"
)

// Deps are the dependencies of the pages.
type Deps struct {
	BaseURL   string    // this server's URL, for the examples
	Catalogue Catalogue // nil: there is none
}

type site struct {
	Deps
	content func() (*content, error)
}

// content is all rendered content.
type content struct {
	frame    views.Frame // without title and path
	guides   map[string]guide
	errors   map[string]guide // by code
	overview views.Overview
	groups   []views.Group
	order    []views.Link    // all pages of the navigation
	pages    map[string]page // by path
	entries  []entry
	json     []byte
}

var errNoPage = fault.New(fault.NotFound, "no_such_path", "The documentation has no page at this address. It starts at /docs.")

const (
	plainText    = "text/plain; charset=utf-8"
	markdownText = "text/markdown; charset=utf-8"
)

// firstPage is how long a page can take: the first request renders all of them, which takes time on a busy machine.
const firstPage = 30 * time.Second

// Routes is the route table of the documentation. Everybody can read it.
func Routes(d Deps) []handlers.Route {
	s := &site{Deps: d}
	s.content = sync.OnceValues(s.load)
	var routes []handlers.Route
	for path, handler := range map[string]handlers.Handler{
		"/docs":                       s.landing,
		"/docs/search":                s.search,
		"/docs/search.json":           s.quickSearch,
		referencePage:                 s.reference,
		"/docs/api.md":                s.markdown,
		"/docs/api/:group":            s.group,
		"/docs/api/:group/:operation": s.operation,
		"/docs/errors/:code":          s.problem,
		"/docs/catalog":               s.showCatalogue,
		"/docs/catalogue":             s.showCatalogue, // its former address
		"/docs/:page":                 s.guide,
		"/docs/adr/:page":             s.guide,
		"/docs/ops/:page":             s.guide,
		"/llms.txt":                   s.file(plainText, func(c *content) []byte { return []byte(c.short(d.BaseURL)) }),
		"/llms-full.txt":              s.file(plainText, func(c *content) []byte { return []byte(c.full()) }),
		"/api/openapi.yaml":           s.file("application/yaml", func(*content) []byte { return api.Contract }),
		"/api/openapi.json":           s.file("application/json", func(c *content) []byte { return c.json }),
	} {
		routes = append(routes, handlers.Route{
			Method:  http.MethodGet,
			Path:    path,
			Access:  handlers.Access{Public: true},
			Timeout: firstPage,
			Handler: func(call *handlers.Call) error {
				if strings.HasSuffix(call.Request.URL.Path, markdownEnd) {
					return s.markdown(call)
				}
				return handler(call)
			},
		})
	}
	return routes
}

func (s *site) load() (*content, error) {
	c := &content{pages: map[string]page{}}
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
	if c.groups, err = doc.reference(s.BaseURL); err != nil {
		return nil, err
	}
	if c.frame.Sections, err = c.sections(); err != nil {
		return nil, err
	}
	c.order = sequence(c.frame.Sections)
	intro := doc.text("info", "description")
	c.overview = views.Overview{Intro: prose(intro), Groups: c.groups, Problems: texts(get(doc.root, "x-problems"))}
	c.addPages(intro)
	c.entries = c.index()
	c.json, err = json.Marshal(doc.plain())
	return c, err
}

// addPages lists every page by its path, with its Markdown.
func (c *content) addPages(intro string) {
	add := func(path, title, about, source string) { c.pages[path] = page{path, title, about, source} }
	for name, g := range c.guides {
		add("/docs/"+name, g.title, g.about, g.source)
	}
	for code, g := range c.errors {
		add("/docs/errors/"+code, g.title, g.about, g.source)
	}
	add(referencePage, referenceTitle, "Every operation of Posthorn's API, with its fields, errors, and samples.", "# "+referenceTitle+"\n\n"+intro)
	for _, g := range c.groups {
		add(g.Path, g.Title(), g.About, groupMarkdown(g))
		for _, o := range g.Operations {
			add(o.Page, o.Summary, cut(plain(o.Summary+": "+o.Method+" "+o.Path+". "+o.Text), 200), operationMarkdown(o))
		}
	}
}

// built is a page's content: a title of its own or none, the body or nil if the page does not exist, and the headings
// for its table of contents.
type built struct {
	title    string
	body     templ.Component
	contents []views.Heading
}

// show renders the page at the request's path.
func (s *site) show(call *handlers.Call, title string, build func(*content) built) error {
	c, err := s.content()
	if err != nil {
		return err
	}
	page := build(c)
	if page.body == nil {
		return errNoPage
	}
	f := c.frame
	f.Title, f.Contents = cmp.Or(page.title, title), page.contents
	f.Theme, f.Query = handlers.Theme(call.Request), call.Request.URL.Query().Get("q")
	c.place(&f, call.Request.URL.Path)
	return call.Render(http.StatusOK, views.Page(f, page.body))
}

func (s *site) landing(call *handlers.Call) error {
	_, on, err := s.types(call.Ctx())
	if err != nil {
		on = false // without the database the documentation is still served
	}
	return s.show(call, "Documentation", func(c *content) built {
		landing := c.landing()
		landing.Catalogue = on
		return built{body: views.LandingPage(landing)}
	})
}

func (s *site) search(call *handlers.Call) error {
	query := strings.TrimSpace(call.Request.URL.Query().Get("q"))
	return s.show(call, "Search", func(c *content) built {
		return built{body: views.SearchPage(cut(query, 100), c.find(cut(query, 100)))}
	})
}

// quickSearch responds to the script of the search field with the first results, as HTML would show them without marks.
func (s *site) quickSearch(call *handlers.Call) error {
	c, err := s.content()
	if err != nil {
		return err
	}
	type hit struct {
		Title string `json:"title"`
		Page  string `json:"page"`
		Path  string `json:"path"`
	}
	found := []hit{}
	for _, h := range c.find(cut(strings.TrimSpace(call.Request.URL.Query().Get("q")), 100)) {
		if len(found) < mostQuick {
			found = append(found, hit{views.Plain(h.Title), h.Page, h.Path})
		}
	}
	return call.Answer(http.StatusOK, found)
}

func (s *site) reference(call *handlers.Call) error {
	return s.show(call, referenceTitle, func(c *content) built {
		return built{body: views.OverviewPage(c.overview), contents: c.overview.Headings()}
	})
}

func (s *site) group(call *handlers.Call) error {
	return s.show(call, "", func(c *content) built {
		for _, g := range c.groups {
			if g.Path == call.Request.URL.Path {
				return built{title: g.Title(), body: views.GroupPage(g)}
			}
		}
		return built{}
	})
}

func (s *site) operation(call *handlers.Call) error {
	return s.show(call, "", func(c *content) built {
		for _, g := range c.groups {
			for _, o := range g.Operations {
				if o.Page == call.Request.URL.Path {
					return built{o.Summary, views.OperationPage(o), o.Headings()}
				}
			}
		}
		return built{}
	})
}

func (s *site) guide(call *handlers.Call) error {
	return s.show(call, "", func(c *content) built {
		return prosePage(c.guides, strings.TrimPrefix(call.Request.URL.Path, "/docs/"))
	})
}

func (s *site) problem(call *handlers.Call) error {
	return s.show(call, "", func(c *content) built { return prosePage(c.errors, call.Param("code")) })
}

func prosePage(of map[string]guide, name string) built {
	g, ok := of[name]
	if !ok {
		return built{}
	}
	return built{g.title, views.Prose(g.body), g.parts}
}

// markdown serves a page as Markdown, at the page's path with the suffix of Markdown pages.
func (s *site) markdown(call *handlers.Call) error {
	c, err := s.content()
	if err != nil {
		return err
	}
	p, ok := c.pages[strings.TrimSuffix(call.Request.URL.Path, markdownEnd)]
	if !ok {
		return errNoPage
	}
	call.Data(http.StatusOK, markdownText, []byte(p.source))
	return nil
}

// file serves a part of the content unchanged.
func (s *site) file(kind string, part func(*content) []byte) handlers.Handler {
	return func(call *handlers.Call) error {
		c, err := s.content()
		if err != nil {
			return err
		}
		call.Data(http.StatusOK, kind, part(c))
		return nil
	}
}
