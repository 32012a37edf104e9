package cli

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"posthorn/client"
)

// cause is why a request got no response, for a person.
func cause(request *url.Error) string {
	var name *net.DNSError
	var call *os.SyscallError
	var signer x509.UnknownAuthorityError
	var operation *net.OpError
	switch {
	case errors.As(request.Err, &name) && name.IsNotFound:
		return "there is no host of this name"
	case errors.As(request.Err, &call):
		return call.Err.Error()
	case request.Timeout():
		return "it did not respond in time"
	case errors.As(request.Err, &signer):
		return "its certificate is signed by an authority that this machine doesn't trust"
	case errors.Is(request.Err, http.ErrSchemeMismatch):
		return "it speaks http, and the address says https"
	case errors.Is(request.Err, io.EOF), errors.Is(request.Err, io.ErrUnexpectedEOF):
		return "it closed the connection without a response"
	case errors.As(request.Err, &operation):
		return operation.Err.Error()
	}
	return request.Err.Error()
}

// fileText says why a file can't be used. Any other error is its own text.
func fileText(err error) string {
	var path *fs.PathError
	switch {
	case !errors.As(err, &path):
		return err.Error()
	case errors.Is(err, fs.ErrNotExist):
		return path.Path + " does not exist."
	case errors.Is(err, fs.ErrPermission):
		return path.Path + " can't be used: this user has no permission."
	}
	return fmt.Sprintf("%s can't be used: %v.", path.Path, path.Err)
}

// jsonText says what keeps a text from being a JSON object.
func jsonText(text []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return `is not a JSON object, such as {"url":"https://example.com"}.`
	}
	before := text[:min(max(int(syntax.Offset)-1, 0), len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	return fmt.Sprintf("is not JSON: check line %d at character %d.", line, len(before)-bytes.LastIndexByte(before, '\n'))
}

// retryFlags are the flags of the fields of a retry policy.
var retryFlags = map[string]string{
	"retry_policy":        "retry-policy",
	"retry_policy.name":   "retry-policy",
	"retry_policy.delays": "retry-delays",
	"retry_policy.jitter": "retry-jitter",
	"retry_policy.spread": "retry-spread",
}

// withFlags names the flags in an error about an endpoint's settings, in the place of the fields of the API.
func withFlags(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) {
		return err
	}
	named := *refused
	named.Fields = slices.Clone(refused.Fields)
	for i, f := range named.Fields {
		flag := settingFlag(f.Field)
		if flag == "" {
			continue
		}
		field := regexp.MustCompile(`\b` + regexp.QuoteMeta(f.Field) + `\b`)
		named.Detail = field.ReplaceAllLiteralString(named.Detail, flag)
		named.Fields[i].Field, named.Fields[i].Detail = flag, field.ReplaceAllLiteralString(f.Detail, flag)
	}
	return &named
}

// settingFlag is the flag that sets a field of an endpoint; empty: none does.
func settingFlag(field string) string {
	if flag := retryFlags[field]; flag != "" {
		return "--" + flag
	}
	name, _, _ := strings.Cut(strings.ReplaceAll(field, "[", "."), ".")
	for _, f := range flagged() {
		if f.Name == name {
			return "--" + flagName(f)
		}
	}
	return ""
}
