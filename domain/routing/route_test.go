package routing

import (
	"testing"

	"posthorn/domain/filter"
)

// A change of an endpoint compiles its filter again only if the filter changed, and either way the new rule decides.
func TestARouteThatFollowsAnotherDecidesByItsOwnRule(t *testing.T) {
	t.Parallel()
	rules := []Rule{
		all,
		with(func(r *Rule) { r.Filter = `"data.amount > 3"` }),
		with(func(r *Rule) { r.Filter = `"data.amount < 3"` }),
		with(func(r *Rule) { r.Filter, r.EventTypes = `"data.amount > 3"`, []string{"user.*"} }),
		with(func(r *Rule) { r.Filter, r.Version = `"data.amount > 3"`, "2" }),
		with(func(r *Rule) { r.Filter = `"no filter` }),
	}
	in := filter.NewInput("order.paid", []byte(`{"amount":5}`), nil)
	for i, before := range rules {
		for j, after := range rules {
			was, want := Compile(before), Compile(after)
			got := was.Follow(after)
			for _, version := range []string{"", "1"} {
				gotOK, gotClause, gotWhy := got.Takes(in, version)
				wantOK, wantClause, wantWhy := want.Takes(in, version)
				if gotOK != wantOK || gotClause != wantClause || gotWhy != wantWhy {
					t.Errorf("rule %d after %d: %t %v %q, want %t %v %q", j, i, gotOK, gotClause, gotWhy, wantOK, wantClause, wantWhy)
				}
			}
			if same := got.Filter == was.Filter; got.Filter != nil && same != (before.Filter == after.Filter) {
				t.Errorf("rule %d after %d: the old filter is kept: %t", j, i, same)
			}
		}
	}
}
