package send

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/signature"
)

// verify sends the challenge in the endpoint's mode and checks the response.
func (h *httpTransport) verify(ctx context.Context, t *Destination, p *request, c challenge) (status int, detail string, verified bool) {
	a := &queue.Attempt{}
	r, answer := h.challenge(ctx, t, p, c, a)
	if r.Stale && r.Status == http.StatusUnauthorized {
		*a = queue.Attempt{}
		r, answer = h.challenge(ctx, t, p, c, a) // with another access token
	}
	filter, evidence := delivery.FilterOf(r.Status, answer, a.ResponseExcerpt)
	switch {
	case filter != "":
		return r.Status, fmt.Sprintf("The request didn't reach the endpoint: %s in front of it returned %d. The evidence is %s.", filter, r.Status, evidence), false
	case r.Failure.Unsent():
		return 0, "Nothing was sent: " + a.Error + ".", false
	case r.Failure != delivery.FailNone:
		return 0, "The endpoint didn't respond: " + a.Error + ".", false
	case c.mode == modeOptions:
		detail = c.permission(r.Status, answer)
		return r.Status, detail, detail == ""
	case r.Status < 200 || r.Status > 299:
		return r.Status, "The endpoint returned " + strings.TrimSpace(strconv.Itoa(r.Status)+" "+http.StatusText(r.Status)) + " instead of a 2xx.", false
	case c.mode == "simple" || echoes(a.ResponseExcerpt, c.text):
		return r.Status, "", true
	}
	return r.Status, "The endpoint returned 2xx, but its body isn't the challenge. Return the challenge as plain text, or as JSON {\"challenge\": \"...\"}.", false
}

// challenge sends a verification once.
func (h *httpTransport) challenge(ctx context.Context, t *Destination, p *request, c challenge, a *queue.Attempt) (delivery.Result, http.Header) {
	own := *p
	exchange := func() (delivery.Result, http.Header) {
		return h.exchange(ctx, t, func(ctx context.Context) *http.Request {
			switch c.mode {
			case "challenge_get":
				u := *t.to.(*httpAddress).url
				q := u.Query()
				q.Set("challenge", c.text)
				u.RawQuery = q.Encode()
				return bare(ctx, t, http.MethodGet, &u, slices.Concat(own.headers[len(p.headers):], p.signGet(&u)))
			case modeOptions:
				u := *t.to.(*httpAddress).url
				return bare(ctx, t, http.MethodOptions, &u, slices.Concat(own.headers[len(p.headers):], c.headers()))
			}
			return post(ctx, t, &own)
		}, a)
	}
	if tokens := t.to.(*httpAddress).tokens; tokens != nil {
		return tokens.deliver(ctx, &own, a, exchange)
	}
	return exchange()
}

// bare is a request without a body, with the endpoint's own headers and more.
func bare(ctx context.Context, t *Destination, method string, u *url.URL, more []signature.Header) *http.Request {
	h := http.Header{"User-Agent": userAgent, "Accept-Encoding": identity}
	for _, c := range slices.Concat(t.headers, more) {
		h[c.Name] = []string{c.Value}
	}
	req := &http.Request{
		Method:     method,
		URL:        u,
		Host:       u.Host,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     h,
		// An empty body instead of none: a GET without a body is sent again by the transport itself after a reset.
		Body: io.NopCloser(strings.NewReader("")),
	}
	return req.WithContext(ctx)
}

// echoes reports whether a body is the challenge, plain or as JSON.
func echoes(body []byte, challenge string) bool {
	if strings.TrimSpace(string(body)) == challenge {
		return true
	}
	var answer struct {
		Challenge string `json:"challenge"`
	}
	var text string
	trimmed := bytes.TrimSpace(body)
	return json.Unmarshal(trimmed, &answer) == nil && answer.Challenge == challenge ||
		json.Unmarshal(trimmed, &text) == nil && text == challenge
}
