package docs

import (
	"cmp"
	"fmt"
	"io/fs"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"posthorn/docs"
	"posthorn/views/components"
)

// loadErrors splits errors.md into a page for each code.
func loadErrors() (map[string]guide, error) {
	source, err := fs.ReadFile(docs.Pages, "errors.md")
	if err != nil {
		return nil, err
	}
	all := map[string]guide{}
	related := ""
	for part := range strings.SplitSeq(string(source), "\n### ") {
		heading, body, _ := strings.Cut(part, "\n")
		body, next, _ := strings.Cut(body, "\n## ")
		if code := strings.Trim(heading, "` "); errorCode.MatchString(code) {
			m := errorParts.FindStringSubmatch(body)
			if m == nil {
				return nil, fmt.Errorf("docs/errors.md says of %s something else than status, cause, fix, related pages, and example", code)
			}
			page := errorPage(code, m, related)
			all[code] = guide{title: code, source: page, about: cut(plain(m[2]+" "+m[3]), 200), body: prose(page)}
		}
		if _, of, found := strings.Cut(next, "\nRelated: "); found {
			related = strings.TrimSpace(of)
		}
	}
	return all, nil
}

var (
	// onlyOnPages is what the list of all codes leaves to their pages.
	onlyOnPages = regexp.MustCompile(`(?s)\n\n\*\*Related:\*\* .*?\.\n|\n` + fence + `http\n.*?` + fence + `\n`)
	// errorHeading is the heading of a code in the list.
	errorHeading = regexp.MustCompile(`<h3 id="([a-z0-9_]+)">.*?</h3>`)
	errorCode    = regexp.MustCompile(`^[a-z0-9_]+$`)
	// errorParts are what the page has for a code. What is related is that of the section, unless the code has its own.
	errorParts = regexp.MustCompile(`(?s)^\s*([1-5]\d\d)\. (.+?)\n\n\*\*Fix:\*\* (.+?)(?:\n\n\*\*Related:\*\* (.+?))?(?:\n\n(` + fence + `http\n.*?` + fence + `))?\s*$`)
)

const fence = "```"

// allErrors is the list of all codes, each of which leads to its page.
func allErrors(source []byte) templ.Component {
	short := strings.ReplaceAll(string(onlyOnPages.ReplaceAll(source, nil)), "\n\n**Fix:** ", " ")
	page := rendered(".", status.ReplaceAll([]byte(short), []byte("$1\\. ")))
	return templ.Raw(errorHeading.ReplaceAllString(page, `<h3 id="$1"><a href="/docs/errors/$1"><code>$1</code></a></h3>`))
}

// errorPage is the page of a code. Its example is a request, where there is one, and the response.
func errorPage(code string, part []string, related string) string {
	status, _ := strconv.Atoi(part[1]) // of three digits
	title := http.StatusText(status)
	said, _, _ := strings.Cut(plain(part[2]), ". ")
	response := fmt.Sprintf(
		"%sjson\n{\n  \"type\": \"/docs/errors/%s\",\n  \"title\": %q,\n  \"status\": %d,\n  \"code\": %q,\n  \"detail\": %q\n}\n%s",
		fence,
		code,
		title,
		status,
		code,
		strings.TrimSuffix(said, ".")+".",
		fence,
	)
	return strings.Join([]string{
		"# `" + code + "`",
		fmt.Sprintf("HTTP %d %s", status, title),
		"## Cause",
		part[2],
		"## Example",
		strings.TrimSpace(part[5] + "\n\n" + response),
		"## Fix",
		part[3],
		"## Related",
		components.Capital(cmp.Or(part[4], related)),
		"[All errors](/docs/errors)",
	}, "\n\n") + "\n"
}
