package show_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/show"
)

func TestRangesAreBoundedByIDs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	ids := map[string]id.UUID{}
	for name, when := range map[string]time.Time{"before": at.Add(-time.Millisecond), "at": at, "after": at.Add(time.Millisecond)} {
		ids[name] = id.New(when, [10]byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	}
	inside := func(r show.Range, uuid id.UUID) bool {
		low, high := r.Between(time.Unix(0, 0), at.Add(time.Hour))
		return low.Compare(uuid) < 0 && uuid.Compare(high) < 0
	}
	for name, c := range map[string]struct {
		rows show.Range
		want string
	}{
		"all":            {show.Range{}, "before at after"},
		"since":          {show.Range{Since: at}, "at after"},
		"since a moment": {show.Range{Since: at.Add(time.Nanosecond)}, "after"},
		"until":          {show.Range{Until: at}, "before"},
		"until a moment": {show.Range{Until: at.Add(time.Nanosecond)}, "before at"},
		"both":           {show.Range{Since: at, Until: at.Add(time.Millisecond)}, "at"},
		"nothing":        {show.Range{Since: at, Until: at}, ""},
		"behind, down":   {show.Range{After: bytesOf(ids["at"])}, "before"},
		"behind, up":     {show.Range{After: bytesOf(ids["at"]), Ascending: true}, "after"},
	} {
		var got []string
		for _, name := range []string{"before", "at", "after"} {
			if inside(c.rows, ids[name]) {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func bytesOf(uuid id.UUID) []byte { return uuid[:] }

// row is a row of a scan, numbered in the order of the list.
type row struct {
	n       byte
	matches bool
}

func TestAPageEndsWhereItsReadingStopped(t *testing.T) {
	t.Parallel()
	rows := func(matching string) (out []row) {
		for i, m := range matching {
			out = append(out, row{byte(i + 1), m == 'x'})
		}
		return out
	}
	for name, c := range map[string]struct {
		rows []row
		scan int
		want string // the rows, and where the next page starts
	}{
		"all of a short list":          {rows("xx"), 9, "[1 2] 0"},
		"exactly full":                 {rows("xxx"), 9, "[1 2 3] 0"},
		"one more":                     {rows("xxxx"), 9, "[1 2 3] 3"},
		"stopped after rows":           {rows("x....."), 6, "[1] 6"},
		"stopped at a matching row":    {rows("...x"), 4, "[4] 4"},
		"stopped without a match":      {rows("...."), 4, "[] 4"},
		"full before the reading ends": {rows("xx.x.x"), 6, "[1 2 4] 4"},
		"nothing":                      {nil, 4, "[] 0"},
	} {
		page := show.Scanned(c.rows, 3, c.scan, func(r row) (id.UUID, int64, bool) { return id.UUID{r.n}, int64(r.n), r.matches })
		var next byte
		if page.Next != nil {
			next = page.Next[0]
		}
		if got := fmt.Sprint(numbers(page.Rows), next); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	page := show.CutByID(rows("xxxx"), 3, func(r row) id.UUID { return id.UUID{r.n} })
	if !slices.Equal(numbers(page.Rows), []int{1, 2, 3}) || page.Next[0] != 3 {
		t.Errorf("cut: %+v", page)
	}
	if page := show.CutByID(rows("xxx"), 3, func(r row) id.UUID { return id.UUID{r.n} }); len(page.Rows) != 3 || page.Next != nil {
		t.Errorf("a full last page: %+v", page)
	}
}

func numbers(rows []row) []int {
	out := make([]int, len(rows))
	for i, r := range rows {
		out[i] = int(r.n)
	}
	return out
}
