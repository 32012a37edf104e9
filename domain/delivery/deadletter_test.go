package delivery

import "testing"

func TestADeadLetterHasOneMeaning(t *testing.T) {
	t.Parallel()
	for s := Pending; s <= Held; s++ {
		for bits := range 8 {
			replayed, archived, listener := bits&1 != 0, bits&2 != 0, bits&4 != 0
			want := s == Failed && bits == 0
			if got := IsDeadLetter(s, replayed, archived, listener); got != want {
				t.Errorf("%s, replayed %v, archived %v, listener's %v: %v, want %v", s, replayed, archived, listener, got, want)
			}
		}
	}
}
