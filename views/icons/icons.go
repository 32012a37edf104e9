// Package icons draws the pages' icons: lines of one width on a grid of 16, in the color of the text around them.
package icons

import (
	"context"
	"fmt"
	"io"

	"github.com/a-h/templ"
)

// Name is an icon. The empty one draws nothing.
type Name string

// The icons.
const (
	Archive  Name = "archive"
	Audit    Name = "audit"
	Bell     Name = "bell"
	Bolt     Name = "bolt"
	Book     Name = "book"
	Building Name = "building"
	Cancel   Name = "cancel"
	Check    Name = "check"
	Chevron  Name = "chevron" // downwards
	Clock    Name = "clock"
	Close    Name = "close"
	Code     Name = "code"
	Copy     Name = "copy"
	Dots     Name = "dots"
	Download Name = "download"
	Edit     Name = "edit"
	Eye      Name = "eye"
	Filter   Name = "filter"
	Gauge    Name = "gauge"
	Inbox    Name = "inbox"
	Info     Name = "info"
	Key      Name = "key"
	Layers   Name = "layers"
	Link     Name = "link"
	Logout   Name = "logout"
	Mail     Name = "mail"
	Menu     Name = "menu"
	Monitor  Name = "monitor"
	Moon     Name = "moon"
	Next     Name = "next"
	Pause    Name = "pause"
	Play     Name = "play"
	Plus     Name = "plus"
	Previous Name = "previous"
	Pulse    Name = "pulse"
	Refresh  Name = "refresh"
	Search   Name = "search"
	Send     Name = "send"
	Server   Name = "server"
	Shield   Name = "shield"
	Sliders  Name = "sliders"
	Sun      Name = "sun"
	Switch   Name = "switch"
	Target   Name = "target"
	Trash    Name = "trash"
	User     Name = "user"
	Users    Name = "users"
	Warning  Name = "warning"
)

// paths are the content of the svg elements. They are constants of this file, so they are written unescaped.
var paths = map[Name]string{
	Archive:  `<path d="M2 3h12v3H2zM3 6v7h10V6M6.5 9h3"/>`,
	Audit:    `<path d="M3.5 2h9v12h-9zM6 5.5h4M6 8h4M6 10.5h2"/>`,
	Bell:     `<path d="M8 2a4 4 0 0 0-4 4c0 3.5-1.5 4.5-1.5 5.5h11C13.5 10.5 12 9.5 12 6a4 4 0 0 0-4-4zM6.5 13.8a1.8 1.8 0 0 0 3 0"/>`,
	Bolt:     `<path d="M9 1.5 3 9h4.5L7 14.5 13 7H8.5z"/>`,
	Book:     `<path d="M3 13V3.5A1.5 1.5 0 0 1 4.5 2H13v9.5H4.5A1.5 1.5 0 0 0 3 13a1.5 1.5 0 0 0 1.5 1.5H13v-3"/>`,
	Building: `<path d="M3 14V2.5h7V14M10 6.5h3V14M1.5 14h13M5.5 5.5h2M5.5 8h2M5.5 10.5h2"/>`,
	Cancel:   `<circle cx="8" cy="8" r="6"/><path d="m5.8 5.8 4.4 4.4M10.2 5.8l-4.4 4.4"/>`,
	Check:    `<path d="m3 8.5 3.5 3.5L13 4.5"/>`,
	Chevron:  `<path d="m4 6 4 4 4-4"/>`,
	Clock:    `<circle cx="8" cy="8" r="6"/><path d="M8 4.5V8l2.5 1.5"/>`,
	Close:    `<path d="m4 4 8 8M12 4l-8 8"/>`,
	Code:     `<path d="M5 4.5 1.5 8 5 11.5M11 4.5 14.5 8 11 11.5"/>`,
	Copy:     `<path d="M5.5 5.5h8v8h-8z"/><path d="M10.5 5.5v-3h-8v8h3"/>`,
	Dots:     `<path d="M3.5 8h.01M8 8h.01M12.5 8h.01" stroke-width="2"/>`,
	Download: `<path d="M8 2v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11"/>`,
	Edit:     `<path d="M2.5 13.5v-3l8-8 3 3-8 8zM8.5 4.5l3 3"/>`,
	Eye:      `<path d="M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z"/><circle cx="8" cy="8" r="2"/>`,
	Filter:   `<path d="M2 4h12M4.5 8h7M6.5 12h3"/>`,
	Gauge:    `<path d="M2.6 12a6.2 6.2 0 1 1 10.8 0M8 9.5l2.5-3"/>`,
	Inbox:    `<path d="M2 9.5 4 3h8l2 6.5V13H2zM2 9.5h3.5l1 1.5h3l1-1.5H14"/>`,
	Info:     `<circle cx="8" cy="8" r="6"/><path d="M8 7.5V11M8 5.2v.01"/>`,
	Key:      `<circle cx="5.5" cy="10.5" r="3"/><path d="m7.7 8.3 5.8-5.8M11 5l2 2"/>`,
	Layers:   `<path d="m8 2 6 3-6 3-6-3zM2 8l6 3 6-3M2 11l6 3 6-3"/>`,
	Link:     `<path d="M6.5 9.5a2.7 2.7 0 0 0 3.9 0l2.3-2.3a2.7 2.7 0 0 0-3.9-3.9L8 4.1M9.5 6.5a2.7 2.7 0 0 0-3.9 0L3.3 8.8a2.7 2.7 0 0 0 3.9 3.9l.8-.8"/>`,
	Logout:   `<path d="M6.5 2.5h-4v11h4M6 8h8M11 5l3 3-3 3"/>`,
	Mail:     `<path d="M1.5 3.5h13v9h-13zM1.5 4 8 9l6.5-5"/>`,
	Menu:     `<path d="M2 4.5h12M2 8h12M2 11.5h12"/>`,
	Monitor:  `<path d="M1.5 2.5h13v8.5h-13zM5.5 13.5h5M8 11v2.5"/>`,
	Moon:     `<path d="M13.5 9.6A6 6 0 0 1 6.4 2.5a6 6 0 1 0 7.1 7.1z"/>`,
	Next:     `<path d="m6 3.5 4.5 4.5L6 12.5"/>`,
	Pause:    `<path d="M5 3v10M11 3v10" stroke-width="2"/>`,
	Play:     `<path d="M4 2.5 13 8l-9 5.5z"/>`,
	Plus:     `<path d="M8 3v10M3 8h10"/>`,
	Previous: `<path d="M10 3.5 5.5 8l4.5 4.5"/>`,
	Pulse:    `<path d="M1.5 8.5h3l2-6 3.5 11 2-5h2.5"/>`,
	Refresh:  `<path d="M13.5 8A5.5 5.5 0 1 1 11.9 4.1L13.5 5.7M13.5 2.2v3.5H10"/>`,
	Search:   `<circle cx="7" cy="7" r="4.5"/><path d="m10.3 10.3 3.7 3.7"/>`,
	Send:     `<path d="M14 2 1.8 6.5 7 9l2.5 5.2z"/><path d="M14 2 7 9"/>`,
	Server:   `<path d="M2 2.5h12v5H2zM2 8.5h12v5H2zM4.5 5h.01M4.5 11h.01"/>`,
	Shield:   `<path d="M8 1.8 2.8 3.7v4.1c0 3 2.1 5.3 5.2 6.4 3.1-1.1 5.2-3.4 5.2-6.4V3.7z"/><path d="m5.7 8 1.7 1.7 3-3.2"/>`,
	Sliders:  `<path d="M2 4.5h6M12 4.5h2M2 11.5h2M8 11.5h6"/><circle cx="10" cy="4.5" r="2"/><circle cx="6" cy="11.5" r="2"/>`,
	Sun:      `<circle cx="8" cy="8" r="3"/><path d="M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3.05 3.05l1.06 1.06M11.89 11.89l1.06 1.06M3.05 12.95l1.06-1.06M11.89 4.11l1.06-1.06"/>`,
	Switch:   `<path d="m4.5 6 3.5-3.5L11.5 6M4.5 10l3.5 3.5 3.5-3.5"/>`,
	Target:   `<circle cx="8" cy="8" r="6"/><circle cx="8" cy="8" r="2.5"/>`,
	Trash:    `<path d="M2 4h12M6 4V2h4v2M3.5 4l.7 10h7.6l.7-10M6.5 7v4M9.5 7v4"/>`,
	User:     `<circle cx="8" cy="5" r="3"/><path d="M2.5 14a5.5 5.5 0 0 1 11 0"/>`,
	Users:    `<circle cx="6" cy="5.2" r="2.7"/><path d="M1.2 13.5a4.8 4.8 0 0 1 9.6 0M10.5 2.8a2.7 2.7 0 0 1 0 4.9M12.3 9.5a4.8 4.8 0 0 1 2.5 4"/>`,
	Warning:  `<path d="M8 2 1.5 13.5h13zM8 6.5v3M8 11.5v.01"/>`,
}

// Icon draws an icon of 16 pixels beside a text that says the same, so assistive technology skips it. An unknown name
// draws nothing.
func Icon(name Name) templ.Component { return draw(name, 16) }

// Large draws an icon of 24 pixels.
func Large(name Name) templ.Component { return draw(name, 24) }

func draw(name Name, size int) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		inside, ok := paths[name]
		if !ok {
			return nil
		}
		_, err := fmt.Fprintf(w, `<svg class="icon" width="%d" height="%d" viewBox="0 0 16 16" fill="none" stroke="currentColor" `+
			`stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">%s</svg>`, size, size, inside)
		return err
	})
}

// Mark is Posthorn's own sign.
func Mark() templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, `<svg class="mark" width="24" height="24" viewBox="0 0 32 32" aria-hidden="true">`+
			`<rect class="mark-ground" width="32" height="32" rx="7"/><g class="mark-horn" fill="none" stroke-width="2.6" stroke-linecap="round" `+
			`stroke-linejoin="round"><circle cx="14.5" cy="17" r="5.6"/><path d="M5.5 11.4h9c5 0 8.4-1.1 12-3.9v12.4c-1.7-1.4-3.9-2.4-6.4-2.9"/></g></svg>`)
		return err
	})
}
