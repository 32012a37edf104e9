package components

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// Table is a list of rows, which are its children, made of cells. The cells of the first row name the columns; lead is
// the name of the first. caption says what the table lists, for assistive technology. Where the table has little room,
// each row is a card.
func Table(caption, lead string) templ.Component { return tableOf(caption, lead, "table") }

// BriefTable is a Table whose rows have two lines where it has little room: the lead and the status, then the rest
// without labels.
func BriefTable(caption, lead string) templ.Component {
	return tableOf(caption, lead, "table table-brief")
}

func tableOf(caption, lead, class string) templ.Component {
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		rows := templ.GetChildren(ctx)
		ctx = templ.ClearChildren(ctx)
		var text strings.Builder
		head := &tableHead{lead: lead}
		if err := rows.Render(context.WithValue(ctx, tableKey{}, head), &text); err != nil {
			return err
		}
		return table(caption, class, head.columns, text.String()).Render(ctx, w)
	})
}

// wideColumns is the number of columns above which a table needs more room before its rows fit in lines.
const wideColumns = 5

type tableKey struct{}

// tableHead gathers the columns of a table while its rows are rendered.
type tableHead struct {
	lead    string
	columns []Column
	whole   bool // a second row was started
}

// leadColumn stands for the table's first column.
const leadColumn = "\x00"

// column adds the column of a cell to the table around it.
func column(ctx context.Context, c Column) {
	h, ok := ctx.Value(tableKey{}).(*tableHead)
	if !ok || h.whole {
		return
	}
	switch c.Label {
	case leadColumn:
		c.Label = h.lead
	case "":
		c = Column{Label: "Actions", HideLabel: true, Shrink: true}
	}
	if len(h.columns) > 0 && h.columns[0] == c {
		h.whole = true
		return
	}
	h.columns = append(h.columns, c)
}
