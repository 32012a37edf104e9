package need_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posthorn/tools/need"
)

// fake records how a test ends.
type fake struct {
	testing.TB
	ended string
}

func (f *fake) Helper()      {}
func (f *fake) Name() string { return "TestSomething/of_it" }
func (f *fake) Skipf(format string, args ...any) {
	f.ended = "skipped: " + fmt.Sprintf(format, args...)
	panic(f)
}

func (f *fake) Fatalf(format string, args ...any) {
	f.ended = "failed: " + fmt.Sprintf(format, args...)
	panic(f)
}

func ending(do func(testing.TB)) (ended string) {
	f := &fake{}
	defer func() {
		if recover() != nil {
			ended = f.ended
		}
	}()
	do(f)
	return "ran"
}

// Not parallel: it sets a variable of the process.
func TestAMissingThingIsNamedAndListed(t *testing.T) {
	list := filepath.Join(t.TempDir(), "skipped")
	t.Setenv("POSTHORN_SKIPPED", list)
	got := ending(func(t testing.TB) { need.Programs(t, "go", "no-such-program") })
	if !strings.HasPrefix(got, "skipped: SKIPPED: no-such-program is missing. ") {
		t.Errorf("the test %s", got)
	}
	if got := ending(func(t testing.TB) { need.Programs(t, "go") }); got != "ran" {
		t.Errorf("with the program, the test %s", got)
	}
	if text, err := os.ReadFile(list); err != nil || string(text) != "no-such-program\tTestSomething/of_it\n" {
		t.Errorf("the list is %q, %v", text, err)
	}
}

// A package that can't be installed skips a test only where its registry can't be reached.
func TestOnlyTheNetworkIsAReasonToSkip(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	for said, want := range map[string]string{
		"npm error code ENOTFOUND": "skipped",
		"go: module: Get \"https://proxy.golang.org\": dial tcp: lookup proxy.golang.org: no such host": "skipped",
		"Could not transfer artifact com.example:x:pom:1 from/to central":                               "skipped",
		"./main.go:110:3: cannot use x (variable of type NullableString) as *string":                    "failed",
		"Could not resolve dependencies for project x:x:jar:1: com.svix:none:jar:1 was not found":       "failed",
		"npm error 404 Not Found - GET https://registry.npmjs.org/svix-none":                            "failed",
		"error[E0433]: failed to resolve: use of undeclared type":                                       "failed",
	} {
		if got := ending(func(t testing.TB) { need.Reached(t, "a registry", failed, []byte(said)) }); !strings.HasPrefix(got, want+": ") {
			t.Errorf("%q: the test %s", said, got)
		}
	}
	if got := ending(func(t testing.TB) { need.Reached(t, "a registry", nil, []byte("dial tcp")) }); got != "ran" {
		t.Errorf("after a success the test %s", got)
	}
}
