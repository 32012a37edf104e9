//go:build (e2e || soak) && unix

package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"posthorn/tools/maven"
)

// broker is an Apache Kafka of one node that is its own controller. It has a listener for everybody, one that asks
// for SASL, and one whose advertised address can be another than where it listens.
type broker struct {
	t                        *testing.T
	jars, dir                string
	open, secured, elsewhere string // host:port of the listeners
	control                  string
	advertised               string // of the third listener
	cmd                      *exec.Cmd
	ended                    chan struct{}
}

// kafkaPom says where Apache Kafka's published packages are.
//
//go:embed testdata/kafka/pom.xml
var kafkaPom []byte

const (
	brokerUser     = "anna"
	brokerPassword = "right"
)

// startBroker starts a broker that is stopped with the test.
func startBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{t: t, jars: maven.Jars(t, "kafka", kafkaPom), dir: t.TempDir()}
	for _, address := range []*string{&b.open, &b.secured, &b.elsewhere, &b.control} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // all four are taken before any is given back
		*address = l.Addr().String()
	}
	b.advertised = b.elsewhere
	b.configure()
	out, err := b.java("kafka.tools.StorageTool", "format", "-t", "AAECAwQFBgcICQoLDA0ODw", "-c", b.file("server.properties"),
		"--add-scram", "SCRAM-SHA-512=[name="+brokerUser+",password="+brokerPassword+"]").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return b
}

func (b *broker) file(name string) string { return filepath.Join(b.dir, name) }

func (b *broker) java(class string, args ...string) *exec.Cmd {
	flags := []string{"-Xmx320m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(b.jars, "*"), class}
	return exec.Command("java", append(flags, args...)...)
}

func (b *broker) configure() {
	b.t.Helper()
	text := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[4]s
listeners=OPEN://%[1]s,SASL://%[2]s,ELSEWHERE://%[3]s,CONTROLLER://%[4]s
advertised.listeners=OPEN://%[1]s,SASL://%[2]s,ELSEWHERE://%[5]s
listener.security.protocol.map=OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT,ELSEWHERE:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=OPEN
log.dirs=%[6]s
num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
controlled.shutdown.enable=true
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
`, b.open, b.secured, b.elsewhere, b.control, b.advertised, b.file("data"))
	if err := os.WriteFile(b.file("server.properties"), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// run starts the broker, and waits until it answers.
func (b *broker) run() *broker {
	b.t.Helper()
	b.configure()
	b.cmd, b.ended = b.java("kafka.Kafka", b.file("server.properties")), make(chan struct{})
	output, err := os.OpenFile(b.file("output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	b.cmd.Stdout, b.cmd.Stderr = output, output
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	_ = output.Close()
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		close(ended)
	}(b.cmd, b.ended)
	b.t.Cleanup(b.kill)
	client := b.client()
	defer client.Close()
	eventually(b.t, patience, "the broker answers", func() bool {
		ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Second)
		defer cancel()
		resp, err := kmsg.NewPtrMetadataRequest().RequestWith(ctx, client)
		if err == nil && len(resp.Brokers) == 1 {
			return true
		}
		select {
		case <-b.ended:
			text, _ := os.ReadFile(b.file("output"))
			b.t.Fatalf("the broker has ended:\n%s", text)
		default:
		}
		return false
	})
	return b
}

// stop ends the broker as its operators do, and kill if that lasts too long.
func (b *broker) stop() {
	b.t.Helper()
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.ended:
	case <-time.After(20 * time.Second):
		b.kill()
	}
}

func (b *broker) kill() {
	_ = b.cmd.Process.Kill()
	<-b.ended
}

func (b *broker) client(options ...kgo.Opt) *kgo.Client {
	b.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(b.open)}, options...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// create makes a topic; config is name=value.
func (b *broker) create(topic string, partitions int32, config ...string) {
	b.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, partitions, 1
	for _, c := range config {
		name, value, _ := strings.Cut(c, "=")
		setting := kmsg.NewCreateTopicsRequestTopicConfig()
		setting.Name, setting.Value = name, kmsg.StringPtr(value)
		one.Configs = append(one.Configs, setting)
	}
	req.Topics = append(req.Topics, one)
	client := b.client()
	defer client.Close()
	resp, err := req.RequestWith(b.t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		b.t.Fatalf("topic %s: %v", topic, err)
	}
}

func (b *broker) remove(topic string) {
	b.t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	one := kmsg.NewDeleteTopicsRequestTopic()
	one.Topic = kmsg.StringPtr(topic)
	req.Topics, req.TopicNames = append(req.Topics, one), []string{topic}
	client := b.client()
	defer client.Close()
	resp, err := req.RequestWith(b.t.Context(), client)
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		b.t.Fatalf("topic %s: %v", topic, err)
	}
}

// records reads a topic until it is at the end of each partition.
func (b *broker) records(topic string, atLeast int) (all []*kgo.Record) {
	b.t.Helper()
	client := b.client(kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	eventually(b.t, patience, fmt.Sprintf("%d records are in %s", atLeast, topic), func() bool {
		ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Second)
		defer cancel()
		some := client.PollFetches(ctx).Records()
		all = append(all, some...)
		return len(all) >= atLeast && len(some) == 0
	})
	return all
}
