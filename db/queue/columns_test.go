package queue

import (
	"reflect"
	"slices"
	"testing"

	"posthorn/db/sql"
)

func TestColumnsAreInTheOrderOfTheirStatements(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]any{
		{healthColumns{}, sql.SaveHealthParams{}},
		{eventColumns{}, sql.InsertEventsParams{}},
		{eventColumns{}, sql.InsertEventsOnceParams{}},
		{queueColumns{}, sql.InsertQueueParams{}},
	} {
		if ours, generated := fieldNames(pair[0]), fieldNames(pair[1]); !slices.Equal(ours, generated) {
			t.Errorf("%T has the fields %q, the statement %q", pair[0], ours, generated)
		}
	}
}

func fieldNames(v any) (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		names = append(names, f.Name)
	}
	return names
}
