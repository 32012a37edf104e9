package access

import (
	"slices"
	"testing"
)

func TestAnOperatorWhoLooksReadsAndActsOnlyWhereTheyAsked(t *testing.T) {
	t.Parallel()
	reads := []Action{Read, ReadPayloads, ReadMembers, ReadEventTypes}
	acts := append([]Action{ChangeEndpoints, ChangeEventTypes, ActOnDeliveries, ChangeSettings}, reads...)
	for a := range grants {
		if got, want := MayByView(a, false), slices.Contains(reads, a); got != want {
			t.Errorf("%s while looking: %t", a, got)
		}
		if got, want := MayByView(a, true), slices.Contains(acts, a); got != want {
			t.Errorf("%s while acting: %t", a, got)
		}
	}
	if MayByView("fly", true) {
		t.Error("an operator may do what there is not")
	}
	for _, life := range ViewLives() {
		if life > MaxView {
			t.Errorf("a look of %s", life)
		}
	}
}
