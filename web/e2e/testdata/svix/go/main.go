// The scenario of svix_test.go with Svix's library for Go, as it comes from the module proxy. This line takes the host
// alone from the server's URL, and rejects fields that it does not know.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	svix "github.com/svix/svix-webhooks/go"
)

const secret, other = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var receiver, name = os.Getenv("SVIX_RECEIVER"), os.Getenv("SVIX_NAME")

func must(err error) {
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if e, ok := err.(*svix.Error); ok {
		fmt.Fprintln(os.Stderr, string(e.Body()))
	}
	os.Exit(1)
}

func check(ok bool, what string) {
	if !ok {
		must(fmt.Errorf("not so: %s", what))
	}
}

// ctl asks the receiver of the test.
func ctl(path string) (string, http.Header) {
	res, err := http.Get(receiver + "/ctl/" + path)
	must(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(err)
	check(res.StatusCode == http.StatusOK, path+": "+string(body))
	return string(body), res.Header
}

// wait is the request with this text.
func wait(path, text string) (string, http.Header) {
	return ctl("wait/" + name + path + "?has=" + url.QueryEscape(text))
}

func verifies(key, body string, h http.Header) bool {
	w, err := svix.NewWebhook(key)
	must(err)
	return w.Verify([]byte(body), h) == nil
}

func main() {
	ctx := context.Background()
	server, err := url.Parse(os.Getenv("SVIX_URL"))
	must(err)
	s := svix.New(os.Getenv("SVIX_TOKEN"), &svix.SvixOptions{ServerUrl: server})
	app, err := s.Application.GetOrCreate(ctx, &svix.ApplicationIn{Name: "Go", Uid: svix.String(name), Metadata: &map[string]string{"plan": "gold"}, RateLimit: svix.Int32(90)})
	must(err)
	again, err := s.Application.Get(ctx, name)
	must(err)
	check(again.Id == app.Id && again.Metadata["plan"] == "gold" && *again.RateLimit == 90, "an application is kept")
	_, err = s.Application.List(ctx, nil)
	must(err)
	for _, t := range []string{name + ".done", name + ".later"} {
		_, err = s.EventType.Create(ctx, &svix.EventTypeIn{Name: t, Description: "a type"})
		must(err)
	}
	e, err := s.Endpoint.Create(ctx, name, &svix.EndpointIn{Url: receiver + "/" + name + "/a", Secret: svix.String(secret), FilterTypes: []string{name + ".done"}})
	must(err)
	key, err := s.Endpoint.GetSecret(ctx, name, e.Id)
	must(err)
	check(key.Key == secret, "the secret is the given one")
	listed, err := s.Endpoint.List(ctx, name, nil)
	must(err)
	check(len(listed.Data) == 1, "endpoints are listed")
	send := func(typ, marker string, channels ...string) string {
		m, err := s.Message.Create(ctx, name, &svix.MessageIn{EventType: name + typ, Channels: channels, Payload: map[string]any{"marker": marker}})
		must(err)
		return m.Id
	}
	plain := send(".done", "plain")
	body, head := wait("/a", "plain")
	check(verifies(secret, body, head) && !verifies(other, body, head) && head.Get("svix-id") == plain, "a message arrives and verifies")
	_, err = s.Message.Create(ctx, name, &svix.MessageIn{EventType: name + ".done", Payload: map[string]any{}, TransformationsParams: map[string]any{
		"rawPayload": "marker=raw", "headers": map[string]string{"content-type": "text/plain"},
	}})
	must(err)
	body, head = wait("/a", "marker=raw")
	check(body == "marker=raw" && head.Get("was-content-type") == "text/plain" && verifies(secret, body, head), "a raw payload arrives")

	ctl("status/503/" + name + "/b")
	b, err := s.Endpoint.Create(ctx, name, &svix.EndpointIn{Url: receiver + "/" + name + "/b", Channels: []string{"b"}})
	must(err)
	failing := send(".done", "fails", "b")
	wait("/b", "fails")
	failed := svix.MessageStatus(2)
	for n := 0; n == 0; time.Sleep(50 * time.Millisecond) {
		l, err := s.MessageAttempt.ListByEndpoint(ctx, name, b.Id, &svix.MessageAttemptListOptions{Status: &failed})
		must(err)
		n = len(l.Data)
	}
	ctl("status/200/" + name + "/b")
	must(s.MessageAttempt.Resend(ctx, name, failing, b.Id))
	ctl("delivered/" + name + "/b")

	later := send(".later", "later")
	l, err := s.Message.List(ctx, name, &svix.MessageListOptions{EventTypes: &[]string{name + ".done", name + ".later"}})
	must(err)
	var ids []string
	for _, m := range l.Data {
		ids = append(ids, m.Id)
	}
	check(slices.Contains(ids, plain) && slices.Contains(ids, later), "messages of two types are listed")
	_, err = s.Endpoint.Recover(ctx, name, e.Id, &svix.RecoverIn{Since: time.Now().Add(-time.Hour)})
	must(err)
	must(s.Endpoint.RotateSecret(ctx, name, e.Id, &svix.EndpointSecretRotateIn{Key: svix.String(other)}))
	// A worker that has read the endpoint before the rotation can sign with the old secret a moment longer.
	for i := 0; !verifies(other, body, head); i++ {
		marker := fmt.Sprintf("rotated-%d-", i)
		send(".done", marker)
		body, head = wait("/a", marker)
	}
	check(verifies(secret, body, head), "both secrets verify while they overlap")
	// No example: this line fails before it makes the request ("eventExampleIn is required and must be specified").
	_, err = s.Authentication.AppPortalAccess(ctx, name, &svix.AppPortalAccessIn{})
	must(err)
	must(s.Application.Delete(ctx, name))
	_, err = s.Application.Get(ctx, name)
	refused, ok := err.(*svix.Error)
	check(ok && refused.Status() == http.StatusNotFound, "a deleted application is 404")
	fmt.Println("scenario done")
}
