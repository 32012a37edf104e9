package send

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"posthorn/domain/delivery"
	"posthorn/domain/signature"
)

// modeOptions is the handshake of the specification "HTTP 1.1 Web Hooks for Event Delivery" of CloudEvents, section 4:
// the receiver permits requests from an origin, at a rate in requests a minute.
const (
	modeOptions   = "options"
	requestOrigin = "Webhook-Request-Origin"
	requestRate   = "Webhook-Request-Rate"
	allowedOrigin = "Webhook-Allowed-Origin"
	allowedRate   = "Webhook-Allowed-Rate"
)

// minute is how many seconds a rate of the handshake covers, and so the lowest that a rate limit can keep to.
const minute = 60

// headers are what the handshake asks for.
func (c challenge) headers() []signature.Header {
	h := []signature.Header{{Name: requestOrigin, Value: c.ask.Origin}}
	if r := c.ask.Rate; r != nil {
		h = append(h, signature.Header{Name: requestRate, Value: strconv.Itoa(int(*r) * minute)})
	}
	return h
}

// permission reads a response to the handshake, and returns what is wrong with it; empty: it permits requests. The
// status says nothing: many receivers respond to OPTIONS without knowing the handshake.
func (c challenge) permission(status int, answer http.Header) string {
	origin := strings.TrimSpace(answer.Get(allowedOrigin))
	switch {
	case origin == "":
		return fmt.Sprintf("The endpoint returned %s without the header WebHook-Allowed-Origin. Return it with the value %s, or *.",
			strings.TrimSpace(strconv.Itoa(status)+" "+http.StatusText(status)), c.ask.Origin)
	case origin != "*" && !strings.EqualFold(origin, c.ask.Origin):
		return fmt.Sprintf("The endpoint permits requests from %s instead of %s. Return WebHook-Allowed-Origin with the value %s, or *.",
			delivery.Clip(origin, 100), c.ask.Origin, c.ask.Origin)
	}
	rate := strings.TrimSpace(answer.Get(allowedRate))
	if rate == "" || rate == "*" {
		return ""
	}
	n, err := strconv.Atoi(rate)
	switch {
	case err != nil || n < 1:
		return fmt.Sprintf("The endpoint returned WebHook-Allowed-Rate: %s. Its value is a number of requests per minute, or *.", delivery.Clip(rate, 100))
	case n < minute:
		return fmt.Sprintf("The endpoint permits %d requests per minute. The lowest rate limit is %d per minute: return WebHook-Allowed-Rate with at least %d, or *.", n, minute, minute)
	}
	*c.rate = Permission(n)
	return ""
}

// PerSecond is a rate limit that keeps to the permission; 0: any does.
func (p Permission) PerSecond() int { return int(p) / minute }
