package worker

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"

	"posthorn/domain/endpoint"
)

func TestSpansHaveTheAttributesOfTheSemanticConventions(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]map[attribute.Key]string{
		"https://hooks.example.com/in?key=***": {
			"server.address": "hooks.example.com", "server.port": "443", "http.request.method": "POST", "url.full": "https://hooks.example.com/in?key=***",
		},
		"http://[2001:db8::1]:8080/": {
			"server.address": "2001:db8::1", "server.port": "8080", "http.request.method": "POST", "url.full": "http://[2001:db8::1]:8080/",
		},
		"http://hooks.example.com": {
			"server.address": "hooks.example.com", "server.port": "80", "http.request.method": "POST", "url.full": "http://hooks.example.com",
		},
		"kafka://broker:9092/orders": {
			"server.address": "broker", "server.port": "9092", "messaging.system": "kafka", "messaging.operation.type": "send",
			"messaging.operation.name": "send", "messaging.destination.name": "orders",
		},
		"https://sqs.eu-west-1.amazonaws.com/123456789012/hooks.fifo": {
			"server.address": "sqs.eu-west-1.amazonaws.com", "server.port": "443", "messaging.system": "aws_sqs", "messaging.operation.type": "send",
			"messaging.operation.name": "send", "messaging.destination.name": "hooks.fifo",
			"aws.sqs.queue.url": "https://sqs.eu-west-1.amazonaws.com/123456789012/hooks.fifo",
		},
		"s3://acme-events/hooks/": {"aws.s3.bucket": "acme-events", "url.full": "s3://acme-events/hooks/"},
		"amqps://broker:5671/%2F/all%2Forders": {
			"server.address": "broker", "server.port": "5671", "messaging.system": "rabbitmq", "messaging.operation.type": "send",
			"messaging.operation.name": "send", "messaging.destination.name": "all/orders",
		},
	} {
		u, _, _ := strings.Cut(address, "://")
		of := map[string]endpoint.Kind{"kafka": endpoint.Kafka, "amqps": endpoint.RabbitMQ, "s3": endpoint.S3}[u]
		if strings.Contains(address, "//sqs.") {
			of = endpoint.SQS
		}
		kind, got := conventions(of, address)
		if producer := want["messaging.system"] != ""; producer != (kind == oteltrace.SpanKindProducer) {
			t.Errorf("%s: a span of kind %v", address, kind)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
		for _, a := range got {
			if a.Value.String() != want[a.Key] {
				t.Errorf("%s: %s is %q, want %q", address, a.Key, a.Value.String(), want[a.Key])
			}
		}
	}
}
