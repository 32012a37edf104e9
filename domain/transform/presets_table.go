package transform

import "fmt"

// text is a field of the data that is text, or else another expression.
func text(field, otherwise string) string {
	return fmt.Sprintf(`(type(data) == map && has(data.%[1]s) && type(data.%[1]s) == string ? data.%[1]s : %[2]s)`, field, otherwise)
}

// title is what a receiver shows first: the title that a notice of Posthorn has, or the event's type.
var (
	title   = text("title", `event.type`)
	summary = text("message", `json(data)`)
)

// wholeData is the data as JSON. Text alone would be sent without its quotes.
const wholeData = `type(data) == string ? json(data) : data`

// presets is the table. Each output is compared with its receiver's documented schema in presets_test.go.
var presets = []Preset{
	{
		Name:  "slack",
		Label: "Slack",
		Hint:  "An incoming webhook of Slack (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks).",
		Expression: `{
  "text": ("*" + ` + title + ` + "*\n" + ` + summary + `)
    .replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").substring(0, 3000)
}`,
	},
	{
		Name:  "teams",
		Label: "Microsoft Teams",
		Hint:  "A workflow of Teams that posts when a webhook request is received: an Adaptive Card 1.4.",
		Expression: `{
  "type": "message",
  "attachments": [{
    "contentType": "application/vnd.microsoft.card.adaptive",
    "contentUrl": null,
    "content": {
      "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
      "type": "AdaptiveCard",
      "version": "1.4",
      "body": [
        {"type": "TextBlock", "text": ` + title + `, "weight": "Bolder", "size": "Medium", "wrap": true},
        {"type": "TextBlock", "text": ` + summary + `.substring(0, 5000), "wrap": true},
        {"type": "TextBlock", "text": event.timestamp, "isSubtle": true, "wrap": true}
      ]
    }
  }]
}`,
	},
	{
		Name:  "discord",
		Label: "Discord",
		Hint:  "A webhook of a Discord channel: one embed, and no mentions.",
		Expression: `{
  "embeds": [{
    "title": ` + title + `.substring(0, 256),
    "description": ` + summary + `.substring(0, 4000),
    "timestamp": event.timestamp
  }],
  "allowed_mentions": {"parse": []}
}`,
	},
	{
		Name:  "pagerduty",
		Label: "PagerDuty",
		Hint:  "Events API v2, at https://events.pagerduty.com/v2/enqueue. A field status of the data that is \"resolved\" resolves the incident.",
		Expression: `{
  "routing_key": vars.routing_key,
  "event_action": ` + text("status", `""`) + ` == "resolved" ? "resolve" : "trigger",
  "dedup_key": ` + text("dedup_key", `event.id`) + `.substring(0, 255),
  "payload": {
    "summary": ` + title + `.substring(0, 1024),
    "source": ` + text("source", `endpoint.id`) + `,
    "severity": ` + text("severity", `""`) + ` in ["critical", "error", "warning", "info"] ? ` + text("severity", `""`) + ` : "error",
    "timestamp": event.timestamp,
    "custom_details": data
  },
  "client": "Posthorn",
  ?"client_url": ` + text("url", `""`) + ` != "" ? optional.of(` + text("url", `""`) + `) : optional.none()
}`,
		Variables: []PresetVariable{{"routing_key", "Integration key"}},
	},
	{
		Name:  "opsgenie",
		Label: "Opsgenie",
		Hint:  "The Alert API, at https://api.opsgenie.com/v2/alerts. Atlassian says that Opsgenie ends in April 2027.",
		Expression: `{
  "message": ` + title + `.substring(0, 130),
  "alias": ` + text("dedup_key", `event.id`) + `.substring(0, 512),
  "description": ` + summary + `.substring(0, 15000),
  "source": endpoint.id,
  "details": {"event": event.id, "type": event.type}
}`,
		Headers:   map[string]string{"Authorization": `"GenieKey " + vars.api_key`},
		Variables: []PresetVariable{{"api_key", "API key"}},
	},
	{
		Name:  "thin",
		Label: "Thin event",
		Hint:  "No data: the receiver gets it from a signed link, which opens for as long as the delivery is under way and one hour longer.",
		Expression: `{
  "id": event.id,
  "type": event.type,
  "timestamp": event.timestamp,
  "link": link
}`,
	},
	{
		Name:        "text",
		Label:       "Plain text",
		Hint:        "The title in the first line, and the data or the message below it.",
		Expression:  title + ` + "\n" + ` + summary + ` + "\n"`,
		ContentType: textType,
	},
	{
		Name:  "a2a",
		Label: "A2A push notification",
		Hint:  "The data is a task or an update as the Agent2Agent protocol has it, and is sent as it is, with the client's token.",
		// The specification names no header: A2A's libraries for Python and Go read different ones.
		Expression:  wholeData,
		ContentType: "application/a2a+json",
		Headers:     map[string]string{"X-A2A-Notification-Token": `vars.token`, "A2A-Notification-Token": `vars.token`},
		Variables:   []PresetVariable{{"token", "Notification token"}},
	},
	{
		Name:  "cloudevents",
		Label: "CloudEvents 1.0, structured",
		Hint:  "The event as one JSON object, with its context and its data (CloudEvents 1.0, HTTP binding 3.2).",
		Expression: `{
  "specversion": "1.0",
  "id": event.id,
  "source": "source" in vars ? vars.source : "/posthorn",
  "type": event.type,
  "time": event.timestamp,
  ?"subject": event.key != "" ? optional.of(event.key) : optional.none(),
  "datacontenttype": "application/json",
  "data": data
}`,
		ContentType: "application/cloudevents+json",
	},
	{
		Name:        "cloudevents-binary",
		Label:       "CloudEvents 1.0, binary",
		Hint:        "The data as the body, and the context in headers (CloudEvents 1.0, HTTP binding 3.1).",
		Expression:  wholeData,
		ContentType: jsonType,
		Headers: map[string]string{
			"ce-specversion": `"1.0"`,
			"ce-id":          `percentEncode(event.id)`,
			"ce-source":      `percentEncode("source" in vars ? vars.source : "/posthorn")`,
			"ce-type":        `percentEncode(event.type)`,
			"ce-time":        `event.timestamp`,
			"ce-subject":     `percentEncode(event.key)`,
		},
	},
}
