package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"posthorn/client"
)

// account is a server and a key of it.
type account struct {
	URL string `json:"url"`
	Key string `json:"api_key"`
}

// defaultURL is the address of `posthorn serve`.
const defaultURL = "http://127.0.0.1:8080"

// accountFile is where `posthorn login` stores the account: $XDG_CONFIG_HOME/posthorn/client.json, else
// ~/.config/posthorn.
func (e *Env) accountFile() (string, error) {
	dir := e.variable("XDG_CONFIG_HOME")
	if dir == "" {
		home := e.variable("HOME")
		if home == "" {
			return "", fail(ExitFailed, "There is no home directory to remember the key in. Set POSTHORN_URL and POSTHORN_API_KEY instead.")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "posthorn", "client.json"), nil
}

// account reads the environment, then the file for what the environment leaves out. A key is only sent to the server
// that it was stored with.
func (e *Env) account() (account, error) {
	a := account{URL: e.variable("POSTHORN_URL"), Key: e.variable("POSTHORN_API_KEY")}
	if a.Key != "" {
		if a.URL == "" {
			stored, err := e.stored()
			if err != nil {
				return a, err
			}
			a.URL = stored.URL
		}
		if a.URL == "" {
			a.URL = defaultURL
		}
		return a, nil
	}
	stored, err := e.stored()
	if err != nil {
		return a, err
	}
	if stored.Key == "" {
		return a, fail(ExitRefused, "No API key. Run `posthorn login`, or set POSTHORN_API_KEY (and POSTHORN_URL).")
	}
	if a.URL != "" && strings.TrimRight(a.URL, "/") != stored.URL {
		return a, fail(ExitRefused, "The stored key belongs to %s, and POSTHORN_URL is another server. Set POSTHORN_API_KEY too, or run `posthorn login` again.", stored.URL)
	}
	return stored, nil
}

func (e *Env) stored() (account, error) {
	var a account
	path, err := e.accountFile()
	if err != nil {
		return a, nil //nolint:nilerr // nowhere to have stored anything
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err != nil {
		return a, fail(ExitFailed, "%s", fileText(err))
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fail(ExitFailed, "%s is not what `posthorn login` wrote. Run it again.", path)
	}
	return a, nil
}

// store writes the file, readable only by its owner, completely or not at all.
func (e *Env) store(a account) (string, error) {
	path, err := e.accountFile()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fail(ExitFailed, "%s", fileText(err))
	}
	text, err := json.MarshalIndent(a, "", "  ") //nolint:gosec // G117: the file is for the key
	if err != nil {
		return "", err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".client-*") // 0600 from the start
	if err != nil {
		return "", fail(ExitFailed, "%s", fileText(err))
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(append(text, '\n'))
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return "", fail(ExitFailed, "%s", fileText(err))
	}
	return path, nil
}

type loginCommand struct {
	URL string `arg:"" optional:"" name:"url" help:"The server's address; prompted for if left out."`
}

// Run asks for missing values, tries the key, and stores both. The key comes from stdin or POSTHORN_API_KEY, never from
// an argument, which every user of the machine can see.
func (c loginCommand) Run(ctx context.Context, e *Env) error {
	var err error
	in := bufio.NewReader(e.Stdin)
	a := account{URL: c.URL, Key: e.variable("POSTHORN_API_KEY")}
	if a.URL == "" {
		a.URL = e.variable("POSTHORN_URL")
	}
	if a.URL == "" && e.InTerminal {
		e.notef("Server [%s]: ", defaultURL)
		if a.URL, err = readLine(ctx, in); err != nil {
			return err
		}
	}
	if a.URL == "" {
		a.URL = defaultURL
	}
	if !strings.Contains(a.URL, "://") {
		a.URL = "https://" + a.URL
	}
	a.URL = strings.TrimRight(a.URL, "/")
	if a.Key == "" {
		e.notef("API key: ")
		if a.Key, err = e.readHidden(ctx, in); err != nil {
			return err
		}
	}
	sdk, err := client.New(a.URL, a.Key, client.WithUserAgent("posthorn-cli"), client.WithRetries(1, time.Second))
	if err != nil {
		return fail(ExitUsage, "%s", strings.TrimPrefix(err.Error(), "posthorn: "))
	}
	who, err := keyOwner(ctx, sdk)
	if err != nil {
		return err
	}
	path, err := e.store(a)
	if err != nil {
		return err
	}
	e.printf("Signed in to %s as %s. Remembered in %s.\n", a.URL, who, path)
	return nil
}

// keyOwner describes whom a key belongs to.
func keyOwner(ctx context.Context, c *client.Client) (string, error) {
	tenant, err := c.GetOwnTenant(ctx)
	if client.Code(err) == "tenant_required" {
		return "the platform; name a tenant with --tenant", nil
	}
	if err != nil {
		return "", err
	}
	return tenant.Name + " (" + tenant.ID + ")", nil
}

// readHidden reads a line without echo, where the terminal permits that.
func (e *Env) readHidden(ctx context.Context, in *bufio.Reader) (string, error) {
	if !e.InTerminal {
		return readLine(ctx, in)
	}
	if stty(e.Stdin, "-echo") == nil {
		defer func() {
			_ = stty(e.Stdin, "echo")
			e.notef("\n")
		}()
	}
	return readLine(ctx, in)
}

func stty(terminal io.Reader, mode string) error {
	set := exec.Command("stty", mode)
	set.Stdin = terminal
	return set.Run()
}

type logoutCommand struct{}

// Run removes the file.
func (logoutCommand) Run(e *Env) error {
	path, err := e.accountFile()
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(ExitFailed, "%s", fileText(err))
	}
	e.printf("Forgotten. The key itself still works: revoke it if you lost it.\n")
	return nil
}
