package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// mcpCommand is an MCP server on stdin and stdout, for AI clients that start programs. It passes each message on to
// the server's /mcp, which checks the key and writes the audit log.
type mcpCommand struct {
	Tenant     string `help:"With a platform's key: the tenant to act in (or POSTHORN_TENANT)." placeholder:"TEN"`
	AllowWrite bool   `help:"Offer tools that replay, retry, pause, and resume too."`
}

// Run passes messages on until stdin ends.
func (c mcpCommand) Run(ctx context.Context, e *Env) error {
	account, err := e.account()
	if err != nil {
		return err
	}
	address := strings.TrimRight(account.URL, "/") + "/mcp"
	tenant := c.Tenant
	if tenant == "" {
		tenant = e.variable("POSTHORN_TENANT")
	}
	if tenant != "" {
		address += "/" + url.PathEscape(tenant)
	}
	if c.AllowWrite {
		address += "?allow_write=true"
	}
	if e.Stdin == nil {
		return fail(ExitUsage, "An AI client starts this command and writes to its stdin. See docs/mcp.md.")
	}
	b := &bridge{address: address, key: account.Key, out: e.Stdout, running: map[string]context.CancelFunc{}}
	in := bufio.NewReader(e.Stdin)
	defer b.wait.Wait()
	for {
		line, err := interruptible(ctx, func() ([]byte, error) { return in.ReadBytes('\n') })
		if text := bytes.TrimSpace(line); len(text) > 0 {
			b.begin(ctx, text)
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fail(ExitFailed, "stdin can't be read.")
		}
	}
}

// bridge passes messages on, each in its own goroutine, since one can be a stream.
type bridge struct {
	address, key string
	wait         sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	running map[string]context.CancelFunc // by the id of the request
}

// envelope is what the bridge reads of a message.
type envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Request json.RawMessage `json:"requestId"`
	} `json:"params"`
}

func (b *bridge) begin(ctx context.Context, text []byte) {
	var m envelope
	_ = json.Unmarshal(text, &m) // the server says what is wrong with it
	if m.Method == "notifications/cancelled" {
		b.mu.Lock()
		if cancel := b.running[string(m.Params.Request)]; cancel != nil {
			cancel()
		}
		b.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.running[string(m.ID)] = cancel
	b.mu.Unlock()
	b.wait.Go(func() {
		defer cancel()
		if err := b.pass(ctx, text, m.ID); err != nil && ctx.Err() == nil && len(m.ID) > 0 {
			b.fail(m.ID, err.Error())
		}
		b.mu.Lock()
		delete(b.running, string(m.ID))
		b.mu.Unlock()
	})
}

// pass sends a message and writes the messages of the response.
func (b *bridge) pass(ctx context.Context, text []byte, id json.RawMessage) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.address, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("User-Agent", "posthorn-cli")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		if said := unreachable(err); said != "" {
			return errors.New(said)
		}
		return err
	}
	defer res.Body.Close()
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		lines := bufio.NewReader(res.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if data, is := bytes.CutPrefix(line, []byte("data: ")); is {
				b.write(data)
			}
			if err != nil {
				return nil //nolint:nilerr // the stream has ended
			}
		}
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || len(id) == 0 {
		return err
	}
	var answer struct {
		Version string `json:"jsonrpc"`
		Detail  string `json:"detail"`
		Code    string `json:"code"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Version == "2.0" {
		b.write(body)
		return nil
	}
	if answer.Detail == "" {
		return fmt.Errorf("the server responded with status %d", res.StatusCode)
	}
	return fmt.Errorf("%s [%s]", answer.Detail, answer.Code)
}

// write writes one message as a line.
func (b *bridge) write(text []byte) {
	var line bytes.Buffer
	if json.Compact(&line, text) != nil {
		return
	}
	line.WriteByte('\n')
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = b.out.Write(line.Bytes()) // a client that has gone closes stdin too
}

// fail responds to a request that did not reach the server, or that it rejected as a whole.
func (b *bridge) fail(id json.RawMessage, detail string) {
	text, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0",
		"id":      id,
		"error":   map[string]any{"code": -32000, "message": detail},
	})
	if err == nil {
		b.write(text)
	}
}
