// A program of pollers_test.go with Svix's library for Go, as it comes from the module proxy: see node.mjs.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	svix "github.com/svix/svix-webhooks/go"
	"github.com/svix/svix-webhooks/go/internalapi"
	"github.com/svix/svix-webhooks/go/models"
)

var left, _ = strconv.Atoi(os.Getenv("SVIX_TOTAL"))

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// patient repeats a call while the server is away.
func patient[T any](call func() (T, error)) T {
	for {
		out, err := call()
		var refused *svix.Error
		if err == nil {
			return out
		} else if errors.As(err, &refused) && refused.Status() < 500 && refused.Status() > 0 {
			must(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// take prints messages, or waits a moment if there are none.
func take(ids []string) {
	for _, id := range ids {
		fmt.Println(id)
	}
	if left -= len(ids); len(ids) == 0 {
		time.Sleep(50 * time.Millisecond)
	}
}

func main() {
	ctx := context.Background()
	at, key := os.Getenv("SVIX_URL"), os.Getenv("SVIX_TOKEN")
	app, feed, name := os.Getenv("SVIX_APP"), os.Getenv("SVIX_FEED"), os.Getenv("SVIX_CONSUMER")
	limit := uint64(100)
	if os.Getenv("SVIX_POLLER") == "1" {
		server, err := url.Parse(at)
		must(err)
		client, err := svix.New(key, &svix.SvixOptions{ServerUrl: server})
		must(err)
		var iterator *string
		for left > 0 {
			page := patient(func() (*models.PollingEndpointOut, error) {
				o := &svix.MessagePollerConsumerPollOptions{Limit: &limit, Iterator: iterator}
				return client.Message.Poller.ConsumerPoll(ctx, app, feed, name, o)
			})
			var ids []string
			for _, m := range page.Data {
				ids = append(ids, m.Id)
			}
			take(ids)
			iterator = &page.Iterator
		}
		return
	}
	content, err := json.Marshal(map[string]string{"aid": app, "eid": feed, "surl": at, "esec": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "tok": key})
	must(err)
	consumer, err := svix.NewAutoConfigConsumer("auto_v1_"+base64.StdEncoding.EncodeToString(content), models.SinkInCommon{})
	must(err)
	for left > 0 {
		page := patient(func() (*models.PollerV2PollOut, error) {
			return consumer.Receive(ctx, name, &internalapi.MessagePollerv2ConsumerPollOptions{Limit: &limit})
		})
		var ids []string
		for _, m := range page.Data {
			ids = append(ids, m.Id)
		}
		take(ids)
		if n := len(page.Data); n > 0 {
			patient(func() (bool, error) { return true, consumer.Commit(ctx, name, page.Data[n-1].Offset, nil) })
		}
	}
}
