package importer

import "maps"

// settings are those of every endpoint that is copied: it receives what it did, and is retried as it was.
func settings(url string, eventTypes []string, retries map[string]any) map[string]any {
	return map[string]any{
		"url":                 url,
		"event_types":         eventTypes,
		"retry_policy":        retries,
		"retry_client_errors": true,
		"verification":        "simple",
	}
}

// with adds headers and metadata. None are given too: what was removed there since the last import is removed here.
func with(fields map[string]any, headers, metadata map[string]string) map[string]any {
	fields["custom_headers"], fields["metadata"] = maps.Clone(headers), maps.Clone(metadata)
	if headers == nil {
		fields["custom_headers"] = map[string]string{}
	}
	if metadata == nil {
		fields["metadata"] = map[string]string{}
	}
	return fields
}

// delays is a retry policy of fixed pauses, in seconds: at most 20 of them.
func delays(seconds ...int) map[string]any {
	return map[string]any{"name": "custom", "delays": seconds[:min(len(seconds), 20)]}
}

// doubling is a retry policy with delays that double up to a maximum, in seconds.
func doubling(first, times, longest int) map[string]any {
	var pauses []int
	for pause := max(first, 1); len(pauses) < min(times, 20); pause = min(2*pause, longest) {
		pauses = append(pauses, min(pause, longest))
	}
	return delays(pauses...)
}
