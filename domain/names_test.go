package domain_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// An avoided word named several things, or something that has a usual name. The code has one word for each thing.
type avoidedWord struct {
	words []string
	use   string   // instead
	in    []string // the folders where the word misleads; nil: all
}

var avoidedWords = []avoidedWord{
	{words: []string{"judge", "judged", "judges"}, use: "the verb of each: evaluate, check, classify, verify"},
	{words: []string{"retire", "retired", "retires"}, use: "sign off (a worker), drop (days), expire (a secret), deprecated (an event type)"},
	{words: []string{"spare", "spared"}, use: "idle lanes, after probe"},
	{words: []string{"horizon", "horizons"}, use: "watermark, cutoff"},
	{words: []string{"handout", "handouts"}, use: "lease, request"},
	{words: []string{"hear", "heard"}, use: "notifications, received"},
	{words: []string{"promote", "promotes"}, use: "schedule, make ready"},
	{words: []string{"chore", "chores"}, use: "maintenance, periodic"},
	{words: []string{"books"}, use: "totals, reconcile, ledger"},
	{words: []string{"carrier", "carry", "aim", "aims", "prove", "proves", "proved"}, use: "transport, deliver, configure, verify"},
	{words: []string{"trouble", "troubles"}, use: "incidents, problem"},
	{words: []string{"everywhere"}, use: "cross tenant"},
	{words: []string{"wish", "wishes"}, use: "admin form"},
	{words: []string{"stranger", "strangers"}, use: "anonymous"},
	{words: []string{"fate", "fates"}, use: "classify, status"},
	{words: []string{"heed"}, use: "request probe"},
	{words: []string{"stray", "strays"}, use: "orphaned, late outcome, leftovers"},
	{words: []string{"parcel", "parcels"}, use: "request"},
	// Usual words elsewhere: a share of a whole, a tree walk, the target of a fuzzer or of a scan.
	{words: []string{"share"}, use: "rebalance, fraction", in: []string{"db", "worker"}},
	{words: []string{"walk", "watch", "passed"}, use: "rescan, refresh, boot time", in: []string{"worker"}},
	{words: []string{"target", "targets"}, use: "destination", in: []string{"worker"}},
}

// avoidedTypes named the health of a lane, the recorder's transaction and what it keeps of a request, all at once.
var avoidedTypes = []string{"Record", "Recorded", "AttemptRecord", "record"}

// allowedNames use such a word with its usual meaning.
var allowedNames = map[string]string{}

// wordsOf splits a name at its capitals and underscores.
func wordsOf(name string) (words []string) {
	runes := []rune(name)
	start := 0
	for i, r := range runes {
		ends := i+1 < len(runes) && unicode.IsLower(runes[i+1])
		switch {
		case r == '_':
			words, start = append(words, string(runes[start:i])), i+1
		case i > start && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || ends):
			words, start = append(words, string(runes[start:i])), i
		}
	}
	words = append(words, string(runes[start:]))
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return words
}

// misnamed says what is wrong with a name that a file declares, or nothing.
func misnamed(path, name string) string {
	if allowedNames[path+" "+name] != "" {
		return ""
	}
	words := wordsOf(name)
	if i := slices.Index(words, "hand"); i >= 0 && i+1 < len(words) && words[i+1] == "out" {
		words[i] = "handout"
	}
	for _, r := range avoidedWords {
		here := r.in == nil || slices.ContainsFunc(r.in, func(folder string) bool {
			return strings.HasPrefix(path,
				folder+"/")
		})
		if here && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(r.words, w) }) {
			return fmt.Sprintf("%s: %s: use %s", path, name, r.use)
		}
	}
	return ""
}

// declared calls each for the names that a file declares. Tests' own names are sentences.
func declared(file *ast.File, each func(name string)) {
	each(file.Name.Name)
	for node := range ast.Preorder(file) {
		switch n := node.(type) {
		case *ast.FuncDecl:
			if !strings.HasPrefix(n.Name.Name, "Test") {
				each(n.Name.Name)
			}
		case *ast.TypeSpec:
			each(n.Name.Name)
		case *ast.ValueSpec:
			for _, name := range n.Names {
				each(name.Name)
			}
		case *ast.Field:
			for _, name := range n.Names {
				each(name.Name)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, left := range n.Lhs {
					if name, ok := left.(*ast.Ident); ok {
						each(name.Name)
					}
				}
			}
		}
	}
}

// nameFaults are the misnamed declarations of a file.
func nameFaults(path string, file *ast.File) (faults []string) {
	add := func(name string) {
		if wrong := misnamed(path, name); wrong != "" {
			faults = append(faults, wrong)
		}
	}
	add(strings.TrimSuffix(filepath.Base(path), ".go"))
	declared(file, add)
	for node := range ast.Preorder(file) {
		switch n := node.(type) {
		case *ast.TypeSpec:
			inRoom := strings.HasPrefix(path, "db/") || strings.HasPrefix(path, "worker/")
			if inRoom && slices.Contains(avoidedTypes, n.Name.Name) {
				faults = append(faults, fmt.Sprintf("%s: type %s: use Health, OutcomeBatch, Applied or Attempt", path, n.Name.Name))
			}
		case *ast.Field:
			if len(n.Names) > 0 && n.Names[len(n.Names)-1].Name == "u" && selects(n.Type, "id", "UUID") {
				faults = append(faults, path+": u id.UUID: say whose id it is")
			}
		}
	}
	return faults
}

func TestOneWordNamesOneThing(t *testing.T) {
	t.Parallel()
	files, seen := token.NewFileSet(), 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".gen.go") || strings.HasSuffix(name, "_templ.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		seen++
		for _, fault := range nameFaults(filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator))),
			file) {
			t.Error(fault)
		}
		return nil
	})
	if err != nil || seen < 300 {
		t.Fatalf("read %d files: %v", seen, err)
	}
}

func TestAvoidedWordsAreFound(t *testing.T) {
	t.Parallel()
	for source, wrong := range map[string]bool{
		"func JudgeAnswer() {}":                true,
		"func f() { horizonAt := 1 }":          true,
		"type HandOut struct{}":                true,
		"func handOverTheKey() {}":             false,
		"type x struct{ fatesOf int }":         true,
		"var fatesFound = fated":               true,
		"func adjudge() {}":                    false,
		"type AttemptRecord struct{}":          true,
		"func f(u id.UUID) {}":                 true,
		"func f(tenant, u id.UUID) {}":         true,
		"func f(endpointID id.UUID) {}":        false,
		"func TestTroubleIsFound() {}":         false,
		"func f() { target, err := aimAt() }":  true,
		"func f() { kafkaRecord := record{} }": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "made-up.go", "package p\n"+source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if found := nameFaults("worker/made_up.go", file); (len(found) > 0) != wrong {
			t.Errorf("%s: found %q, want a fault: %t", source, found, wrong)
		}
	}
}
