package importer

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

// with adds a field only if the other server has a value for it.
func with(fields map[string]any, headers, metadata map[string]string) map[string]any {
	if len(headers) > 0 {
		fields["custom_headers"] = headers
	}
	if len(metadata) > 0 {
		fields["metadata"] = metadata
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
