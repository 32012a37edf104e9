// The scenario of svix_test.go with Svix's library for Go, as it comes from the module proxy.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	svix "github.com/svix/svix-webhooks/go"
)

// below adds a path to every request: this line of the library takes the host alone from the server's URL.
type below struct{ path string }

func (b below) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Path = b.path + r.URL.Path
	return http.DefaultTransport.RoundTrip(r)
}

type receiver struct {
	mu       sync.Mutex
	webhooks []*svix.Webhook
	arrived  map[string][]int // by message, how many of the secrets verified
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	good := 0
	for _, h := range r.webhooks {
		if h.Verify(body, req.Header) == nil {
			good++
		}
	}
	if good == 0 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	id := req.Header.Get("svix-id")
	r.arrived[id] = append(r.arrived[id], good)
}

func (r *receiver) trust(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.webhooks = nil
	for _, s := range secrets {
		h, err := svix.NewWebhook(s)
		must(err)
		r.webhooks = append(r.webhooks, h)
	}
}

func (r *receiver) of(id string) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrived[id]
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if e, ok := err.(*svix.Error); ok {
			fmt.Fprintln(os.Stderr, string(e.Body()))
		}
		os.Exit(1)
	}
}

func check(ok bool, what string) {
	if !ok {
		must(fmt.Errorf("not so: %s", what))
	}
}

func until(what string, yes func() bool) {
	for end := time.Now().Add(240 * time.Second); !yes(); time.Sleep(20 * time.Millisecond) {
		check(time.Now().Before(end), "in time: "+what)
	}
}

func main() {
	ctx := context.Background()
	r := &receiver{arrived: map[string][]int{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	go func() { _ = http.Serve(l, r) }()
	total, err := strconv.Atoi(os.Getenv("SVIX_MESSAGES"))
	must(err)
	server, err := url.Parse(os.Getenv("SVIX_URL"))
	must(err)
	s := svix.New(os.Getenv("SVIX_TOKEN"), &svix.SvixOptions{
		ServerUrl:  server,
		HTTPClient: &http.Client{Transport: below{strings.TrimRight(server.Path, "/")}},
	})

	const uid = "go-1"
	app, err := s.Application.Create(ctx, &svix.ApplicationIn{Name: "Go", Uid: *svix.NullableString(svix.String(uid))})
	must(err)
	again, err := s.Application.GetOrCreate(ctx, &svix.ApplicationIn{
		Name: "Go",
		Uid:  *svix.NullableString(svix.String(uid)),
	})
	must(err)
	check(again.Id == app.Id, "getOrCreate finds it")
	e, err := s.Endpoint.Create(ctx, uid, &svix.EndpointIn{Url: "http://" + l.Addr().String() + "/hooks", FilterTypes: []string{"invoice.paid"}})
	must(err)
	secret, err := s.Endpoint.GetSecret(ctx, uid, e.Id)
	must(err)
	r.trust(secret.Key)

	ids := make([]string, total)
	next := make(chan int)
	var senders sync.WaitGroup
	for range 10 {
		senders.Go(func() {
			for n := range next {
				m, err := s.Message.Create(ctx, uid, &svix.MessageIn{EventType: "invoice.paid", Payload: map[string]any{"n": n}})
				must(err)
				ids[n] = m.Id
			}
		})
	}
	for n := range total {
		next <- n
	}
	close(next)
	senders.Wait()
	for _, id := range ids {
		until("message "+id+" arrives and verifies", func() bool { return len(r.of(id)) > 0 })
	}

	attempts, err := s.MessageAttempt.ListByMsg(ctx, uid, ids[0], nil)
	must(err)
	check(len(attempts.Data) > 0 && attempts.Data[0].Status == svix.MESSAGESTATUS_SUCCESS, "the attempt succeeded")
	must(s.MessageAttempt.Resend(ctx, uid, ids[0], e.Id))
	until("the message arrives again under its id", func() bool { return len(r.of(ids[0])) > 1 })
	_, err = s.Endpoint.Recover(ctx, uid, e.Id, &svix.RecoverIn{Since: time.Now().Add(-time.Hour)})
	must(err)

	must(s.Endpoint.RotateSecret(ctx, uid, e.Id, &svix.EndpointSecretRotateIn{}))
	fresh, err := s.Endpoint.GetSecret(ctx, uid, e.Id)
	must(err)
	check(fresh.Key != secret.Key, "the secret is another")
	r.trust(secret.Key, fresh.Key)
	// A worker that has read the endpoint before the rotation can sign with the old secret a moment longer.
	until("both secrets verify while they overlap", func() bool {
		m, err := s.Message.Create(ctx, uid, &svix.MessageIn{EventType: "invoice.paid", Payload: map[string]any{"rotated": true}})
		must(err)
		until("a message arrives after the rotation", func() bool { return len(r.of(m.Id)) > 0 })
		return r.of(m.Id)[0] == 2
	})

	link, err := s.Authentication.AppPortalAccess(ctx, uid, &svix.AppPortalAccessIn{})
	must(err)
	jar, err := cookiejar.New(nil)
	must(err)
	page, err := (&http.Client{Jar: jar}).Get(link.Url)
	must(err)
	check(page.StatusCode == http.StatusOK, "the portal opens")
	_, err = s.Application.Get(ctx, "nobody")
	refused, ok := err.(*svix.Error)
	check(ok && refused.Status() == http.StatusNotFound, "an unknown application is 404")
	var body struct{ Code, Detail string }
	check(json.Unmarshal(refused.Body(), &body) == nil && body.Code == "not_found", "with a code")
	must(s.Application.Delete(ctx, uid))
	fmt.Println("scenario done")
}
