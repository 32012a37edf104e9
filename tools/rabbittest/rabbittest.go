// Package rabbittest starts RabbitMQ for tests: a node of its own name, with its own ports and files, on this machine
// alone.
package rabbittest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"posthorn/tools/need"
)

// The users of a broker, who have the same password. Reader has no permission to write.
const (
	User     = "anna"
	Reader   = "rita"
	Password = "right"
)

const (
	server   = "/usr/lib/rabbitmq/bin/rabbitmq-server" // the packaged program without the wrapper that changes the user
	patience = 3 * time.Minute
)

// Broker is a RabbitMQ node.
type Broker struct {
	Open, Secured string // host:port of the listeners without and with TLS

	dir, epmd string
	cmd       *exec.Cmd
	ended     chan struct{}
}

// Need skips a test on a machine without RabbitMQ.
func Need(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(server); err != nil {
		need.Missing(t, "rabbitmq-server", "Install it to run this test.")
	}
}

// New prepares a broker in a folder of its own. Run starts it. certificate and key are PEM;
// empty: there is no listener with TLS.
func New(t testing.TB, dir, certificate, key string) *Broker {
	t.Helper()
	Need(t)
	b := &Broker{dir: dir}
	var dist string
	for _, address := range []*string{&b.Open, &b.Secured, &b.epmd, &dist} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }() // all are different
		*address = l.Addr().String()
	}
	config := "listeners.tcp.default = " + b.Open + "\nloopback_users = none\nload_definitions = " + b.file("definitions.json") +
		"\nlog.console = false\nvm_memory_high_watermark.absolute = 512MB\ndisk_free_limit.absolute = 1MB\n"
	files := map[string]string{"definitions.json": definitions(t), "plugins": "[].\n"}
	if certificate != "" {
		config += "listeners.ssl.default = " + b.Secured + "\nssl_options.verify = verify_none\nssl_options.certfile = " + b.file("cert.pem") +
			"\nssl_options.keyfile = " + b.file("key.pem") + "\n"
		files["cert.pem"], files["key.pem"] = certificate, key
	}
	files["rabbitmq.conf"] = config
	files["dist"] = port(dist)
	for name, text := range files {
		if err := os.WriteFile(b.file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *Broker) file(name string) string { return filepath.Join(b.dir, name) }

func port(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// definitions are the users, with a virtual host beside the default one.
func definitions(t testing.TB) string {
	t.Helper()
	salt := []byte("salt")
	sum := sha256.Sum256(append(salt, Password...))
	hash := base64.StdEncoding.EncodeToString(append(salt, sum[:]...))
	var users, permissions []any
	for name, write := range map[string]string{User: ".*", Reader: "^$"} {
		users = append(users, map[string]any{"name": name, "password_hash": hash, "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": ""})
		permissions = append(permissions, map[string]any{"user": name, "vhost": "/", "configure": ".*", "write": write, "read": ".*"})
	}
	permissions = append(permissions, map[string]any{"user": User, "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"})
	text, err := json.Marshal(map[string]any{
		"users":       users,
		"vhosts":      []any{map[string]any{"name": "/"}, map[string]any{"name": "shop"}},
		"permissions": permissions,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Run starts the node, also again after Stop, and waits until it accepts logins.
func (b *Broker) Run(t testing.TB) *Broker {
	t.Helper()
	dist, err := os.ReadFile(b.file("dist"))
	if err != nil {
		t.Fatal(err)
	}
	output, err := os.OpenFile(b.file("output"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = output.Close() }()
	// The node finds a running epmd, and so leaves none behind.
	environment := append(os.Environ(), "HOME="+b.dir, "ERL_EPMD_PORT="+port(b.epmd), "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=t"+port(b.Open)+"@localhost", "RABBITMQ_DIST_PORT="+string(dist), "RABBITMQ_CONFIG_FILE="+b.file("rabbitmq"),
		"RABBITMQ_MNESIA_BASE="+b.file("data"), "RABBITMQ_LOG_BASE="+b.file("log"), "RABBITMQ_ENABLED_PLUGINS_FILE="+b.file("plugins"),
		"RABBITMQ_CONF_ENV_FILE="+b.file("none"), "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none")
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = environment, output, output
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	names := run(need.Program(t, "epmd"))
	b.cmd, b.ended = run(server), make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait()
		_ = names.Process.Kill()
		_ = names.Wait()
		close(ended)
	}(b.cmd, b.ended)
	until, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		conn, err := amqp.Dial(b.URL())
		if err == nil {
			_ = conn.Close()
			return b
		}
		select {
		case <-b.ended:
			err = errors.Join(err, errors.New("the node has ended"))
		case <-until.Done():
			b.Kill()
		case <-time.After(100 * time.Millisecond):
			continue
		}
		text, _ := os.ReadFile(b.file("output"))
		t.Fatalf("no RabbitMQ: %v\n%s", err, text)
	}
}

// URL is the address with a login, for clients of tests.
func (b *Broker) URL() string { return fmt.Sprintf("amqp://%s:%s@%s/", User, Password, b.Open) }

// Stop ends the node as its operators do, and kills it if that lasts too long.
func (b *Broker) Stop() {
	b.signal(syscall.SIGTERM)
	select {
	case <-b.ended:
	case <-time.After(30 * time.Second):
		b.Kill()
	}
}

// Kill ends the node at once.
func (b *Broker) Kill() {
	b.signal(syscall.SIGKILL)
	<-b.ended
}

// signal reaches the node's whole process group: its start script is the parent.
func (b *Broker) signal(s syscall.Signal) {
	select {
	case <-b.ended: // its number can belong to another process
	default:
		_ = syscall.Kill(-b.cmd.Process.Pid, s)
	}
}

// Client is a connection of a test, and its channel.
func (b *Broker) Client(t testing.TB) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// Bind makes a durable topic exchange and a durable queue that is bound to it by a pattern.
func (b *Broker) Bind(t testing.TB, exchange, queue, pattern string, arguments amqp.Table) {
	t.Helper()
	ch := b.Client(t)
	err := ch.ExchangeDeclare(exchange, amqp.ExchangeTopic, true, false, false, false, nil)
	if err == nil {
		_, err = ch.QueueDeclare(queue, true, false, false, false, arguments)
	}
	if err == nil {
		err = ch.QueueBind(queue, pattern, exchange, false, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Messages takes so many messages from a queue.
func (b *Broker) Messages(t testing.TB, queue string, n int) (got []amqp.Delivery) {
	t.Helper()
	messages, err := b.Client(t).Consume(queue, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for wait := time.After(20 * time.Second); len(got) < n; {
		select {
		case m, open := <-messages:
			if !open {
				t.Fatalf("%s: the connection ended after %d messages, want %d", queue, len(got), n)
			}
			got = append(got, m)
		case <-wait:
			t.Fatalf("%s has %s messages, want %d", queue, strconv.Itoa(len(got)), n)
		}
	}
	return got
}
