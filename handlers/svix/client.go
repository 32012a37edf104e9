package svix

import (
	"encoding/json"
	"net/http"
	"strings"

	"posthorn/handlers"
)

// line is the major line of the caller's library, by its User-Agent, such as svix-libs/1.99.1/java; 0: another program.
func line(c *handlers.Call) int {
	version, ok := strings.CutPrefix(c.GetHeader("User-Agent"), "svix-libs/")
	if !ok || version == "" || version[0] < '1' || version[0] > '9' {
		return 0
	}
	return int(version[0] - '0')
}

// strict reports whether the caller rejects fields that it does not know, as Svix's generated library for Go does. The
// newest that the module proxy has is 1.44.
func strict(c *handlers.Call) bool {
	agent := c.GetHeader("User-Agent")
	return line(c) == 1 && strings.HasSuffix(agent, "/go")
}

// newerFields are the fields that strict libraries do not know.
var newerFields = []string{"throttleRate", "eventTypes", "statusText", "deliverAt", "canceled"}

// answer responds with an object or a list, without the fields that the caller would stumble over.
func answer(c *handlers.Call, status int, v any) error {
	if !strict(c) {
		return c.Answer(status, v)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(encode(v), &object) != nil {
		return c.Answer(status, v)
	}
	var rows []map[string]json.RawMessage
	if json.Unmarshal(object["data"], &rows) == nil && rows != nil {
		for _, row := range rows {
			dropNewer(row)
		}
		object["data"] = encode(rows)
	}
	dropNewer(object)
	return c.Answer(status, object)
}

func dropNewer(object map[string]json.RawMessage) {
	for _, name := range newerFields {
		delete(object, name)
	}
}

// answerRotated responds to a rotation: the first line of the libraries expects no body, the second the new secret.
func answerRotated(c *handlers.Call, secret string) error {
	if line(c) == 1 {
		return c.AnswerNothing()
	}
	return c.Answer(http.StatusOK, map[string]string{"key": secret})
}
