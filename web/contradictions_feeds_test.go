package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"posthorn/client"
	"posthorn/domain/id"
)

// How far a consumer of a feed is behind, and that a feed has an event, are the same on every surface.
func TestNoSurfaceContradictsAnotherAboutFeeds(t *testing.T) {
	t.Parallel()
	s := scene{youngDay: newYoungDay(t)}
	s.signIn()
	ctx := t.Context()
	sdk, err := client.New(s.program.URL(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := sdk.CreateEndpoint(ctx, client.EndpointInput{Kind: new(client.EndpointKind("feed")), EventTypes: &[]string{"order.*"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.CreateFeedConsumer(ctx, feed.ID, client.FeedConsumerInput{Name: "warehouse", Start: new("oldest")}); err != nil {
		t.Fatal(err)
	}
	var events []string
	for range 7 {
		made, err := sdk.Emit(ctx, client.Emission{Type: "order.completed", Data: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, made.ID)
	}
	behind := func() (lag client.FeedLag) {
		t.Helper()
		list, err := sdk.ListFeedConsumers(ctx, feed.ID)
		if err != nil || len(list.Data) != 1 {
			t.Fatalf("%+v %v", list, err)
		}
		return list.Data[0].Lag
	}
	if lag := behind(); lag.Seconds > 3600 {
		t.Errorf("a consumer that begins with the oldest event, of a moment ago, is %d seconds behind", lag.Seconds)
	}
	eventually(t, "all events are in the feed", func() bool { return behind().Events == 7 })
	name := "warehouse"
	eventually(t, "two events are read", func() bool {
		page, err := sdk.ReadFeed(ctx, feed.ID, client.ReadFeedParams{Consumer: &name, Limit: new(2)})
		if err != nil || len(page.Data) < 2 {
			return false
		}
		_, err = sdk.AcknowledgeFeed(ctx, feed.ID, client.FeedAck{Cursor: page.Cursor, Consumer: &name})
		return err == nil
	})
	lag := behind()
	if lag.Events != 5 || lag.More {
		t.Errorf("the API says %+v", lag)
	}
	if text := s.command("feeds list " + feed.ID); !slices.Contains(strings.Fields(text), "5") {
		t.Errorf("the command line says %s", text)
	}
	page := "/t/" + id.Tenant.Format(s.tenant) + "/endpoints/" + feed.ID
	if text := s.row(page, name); !strings.Contains(text, " 5 ") {
		t.Errorf("the page of the feed says %s", text)
	}

	routing, err := sdk.ExplainEvent(ctx, events[0])
	if err != nil || routing.Matched != 1 || !slices.ContainsFunc(routing.Data, func(v client.RoutingVerdict) bool { return v.EndpointID == feed.ID && v.Matched }) {
		t.Errorf("the routing of the event: %+v %v", routing, err)
	}
	if text := s.text("/t/" + id.Tenant.Format(s.tenant) + "/events/" + events[0]); !strings.Contains(text, "feed") || strings.Contains(text, "matched nothing") {
		t.Errorf("the page of the event does not name the feed: %s", text)
	}
	one, err := sdk.GetEvent(ctx, events[0])
	if err != nil || one.Outcome == nil || one.Outcome.Feeds != 1 {
		t.Errorf("the API's outcome: %+v %v", one.Outcome, err)
	}
	for where, text := range map[string]string{
		"the list of events":           s.row("/t/"+id.Tenant.Format(s.tenant)+"/events", events[0]),
		"the list on the command line": s.command("events list"),
	} {
		if !strings.Contains(text, "1 feed") || strings.Contains(text, "matched nothing") {
			t.Errorf("%s says %s", where, text)
		}
	}
	if text := s.text("/t/" + id.Tenant.Format(s.tenant) + "/events?outcome=unmatched"); strings.Contains(text, "order.completed") {
		t.Errorf("events that matched nothing are %s", text)
	}
}
