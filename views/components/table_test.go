package components

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/a-h/templ"
)

func TestTheCellsOfTheFirstRowNameTheColumns(t *testing.T) {
	t.Parallel()
	rows := templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		for range 2 {
			row := []templ.Component{SelectRow("b", "1", "Select 1"), LeadCell(""), CellAt("State", "aside"), NumberCell("Count"), Cell("")}
			for _, cell := range row {
				if err := cell.Render(ctx, w); err != nil {
					return err
				}
			}
		}
		return nil
	})
	var out strings.Builder
	ctx := templ.WithChildren(t.Context(), rows)
	if err := Table("All", "Name").Render(ctx, &out); err != nil {
		t.Fatal(err)
	}
	var heads []string
	for _, m := range regexp.MustCompile(`<th scope="col"([^>]*)><span([^>]*)>([^<]*)<`).FindAllStringSubmatch(out.String(), -1) {
		heads = append(heads, m[3])
		if hidden := strings.Contains(m[2], "sr-only"); hidden != (m[3] == "Select" || m[3] == "Actions") {
			t.Errorf("the head %s is hidden: %t", m[3], hidden)
		}
		if right := strings.Contains(m[1], "num"); right != (m[3] == "Count") {
			t.Errorf("the head %s is aligned to the right: %t", m[3], right)
		}
	}
	if got := strings.Join(heads, " "); got != "Select Name State Count Actions" {
		t.Errorf("the columns are %q", got)
	}
	if n := strings.Count(out.String(), "<td"); n != 10 {
		t.Errorf("%d cells", n)
	}
}
