package house_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// skipping are the packages that end tests as skipped by themselves: need does it for all others, rapid's actions skip
// what can't happen in a state, and modules of their own can't import need.
var skipping = []string{"tools/need", "worker/lanes", "tools/image", "tools/chart", "tools/release"}

// ownSkips are the calls with which a file skips tests, such as t.Skip.
func ownSkips(s source) (at []string) {
	if !s.test() || slices.Contains(skipping, s.dir()) {
		return nil
	}
	ast.Inspect(s.file, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, f.Sel.Name) {
				at = append(at, s.at(f))
			}
		}
		return true
	})
	return at
}

// A test that is skipped without saying which one thing it needs looks as if it had passed.
func TestASkippedTestNamesTheOneThingThatItNeeds(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, at := range ownSkips(s) {
			t.Errorf("%s skips a test by itself. Use tools/need, which names the missing thing and lists it", at)
		}
	}
	if got := ownSkips(madeUp(t, "web/x_test.go", "package x\nfunc TestX(t *testing.T) { t.Skipf(\"no luck\"); need.Missing(t, \"x\", \"\") }")); len(got) != 1 || !strings.HasPrefix(got[0], "web/x_test.go:2") {
		t.Errorf("the rule finds %q", got)
	}
}
