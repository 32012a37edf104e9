package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/oapi-codegen/nullable"
)

// Client calls one Posthorn server with one key. It is safe for concurrent use.
type Client struct {
	base      string // up to and including /api/v1, or a tenant's path below it
	key       string
	http      *http.Client
	userAgent string
	retries   int
	longest   time.Duration // pause between two tries
	perTry    time.Duration
	wait      waiter
}

// Option changes how a Client works.
type Option func(*Client)

// The defaults of a client.
const (
	DefaultRetries  = 5
	DefaultMaxPause = 30 * time.Second
	DefaultTimeout  = 30 * time.Second
)

// WithHTTPClient sends requests through another HTTP client: one with a proxy, or with certificates of your own.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithRetries sets how often a request is repeated at most, 0 for never, and the longest pause before a repetition.
// If the server asks for a longer pause in Retry-After, its error is returned instead.
func WithRetries(times int, longest time.Duration) Option {
	return func(c *Client) { c.retries, c.longest = max(times, 0), longest }
}

// WithTimeout limits each try of a request. Streams have no such limit.
func WithTimeout(each time.Duration) Option { return func(c *Client) { c.perTry = each } }

// WithUserAgent puts your program's name before the SDK's own.
func WithUserAgent(name string) Option {
	return func(c *Client) { c.userAgent = name + " " + c.userAgent }
}

// New makes a client of the server at an address such as https://posthorn.example.com. It sends nothing yet: a wrong
// key fails with the first request.
func New(address, key string, options ...Option) (*Client, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("posthorn: %q is not a server's address, such as https://posthorn.example.com", address)
	}
	if key = strings.TrimSpace(key); key == "" {
		return nil, errors.New("posthorn: no API key given")
	}
	base := strings.TrimRight(u.String(), "/")
	if !strings.HasSuffix(base, apiPath) {
		base += apiPath
	}
	c := &Client{
		base:      base,
		key:       key,
		userAgent: "posthorn-go/1",
		retries:   DefaultRetries,
		longest:   DefaultMaxPause,
		perTry:    DefaultTimeout,
		wait:      pause,
		// A redirect would send the key elsewhere, or turn a POST into a GET; the API has none.
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

const apiPath = "/api/v1"

// Tenant is the same client acting within one tenant, for a platform key. A tenant's own key does not need it.
func (c *Client) Tenant(id string) *Client {
	within := *c
	within.base += "/tenants/" + url.PathEscape(id)
	return &within
}

// Nullable is a field that is absent, null, or a value.
type Nullable[T any] = nullable.Nullable[T]

// Value is a field that has a value.
func Value[T any](v T) Nullable[T] { return nullable.NewNullableWithValue(v) }

// Null is a field that is null: in a patch, it clears the stored value.
func Null[T any]() Nullable[T] { return nullable.NewNullNullable[T]() }
