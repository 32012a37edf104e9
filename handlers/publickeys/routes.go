// Package publickeys serves the public keys that verify signatures: those of each tenant, and the platform's directory.
package publickeys

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/seal"
	"posthorn/domain/httpsig"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// Deps are the dependencies of the handlers.
type Deps struct {
	DB      *db.DB
	Keys    *seal.Ring
	BaseURL string
	Now     func() time.Time
}

type keys struct {
	Deps
	mu   sync.Mutex
	bot  *httpsig.Bot
	read time.Time // when bot was read; zero: never
}

// keptFor is how long receivers keep a set of keys, at most: a new key is published for longer before it signs.
const keptFor = "public, max-age=3600"

// readEvery is how often the platform's keys are read, for all requests.
const readEvery = 10 * time.Second

// Routes is the route table.
func Routes(d Deps) []handlers.Route {
	k := &keys{Deps: d}
	open := handlers.Access{Public: true}
	return []handlers.Route{
		{Method: http.MethodGet, Path: httpsig.KeysPath(":" + handlers.TenantParam), Access: open, Handler: k.tenant},
		{Method: http.MethodGet, Path: httpsig.DirectoryPath, Access: open, Handler: k.directory},
	}
}

// tenant responds with the keys of a tenant. A tenant without keys looks like one that does not exist.
func (k *keys) tenant(c *handlers.Call) error {
	tenant := c.PathID(handlers.TenantParam)
	if tenant == endpoints.Platform {
		return httpsig.ErrNoKeys // its keys have a directory of their own
	}
	var found []show.SigningKey
	err := k.DB.Tenant(c.Ctx(), tenant, func(q *db.Tx) (err error) {
		found, err = endpoints.SigningKeys(c.Ctx(), q, tenant)
		return err
	})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return httpsig.ErrNoKeys
	}
	body, err := json.Marshal(show.JWKS(found))
	if err != nil {
		return err
	}
	k.public(c)
	c.Data(http.StatusOK, "application/jwk-set+json", body)
	return nil
}

// public lets everybody keep a response, scripts of other sites too.
func (*keys) public(c *handlers.Call) {
	h := c.Writer.Header()
	h.Set("Cache-Control", keptFor)
	h.Set("Access-Control-Allow-Origin", "*")
}

// directory responds with the platform's keys, signed with each of them.
func (k *keys) directory(c *handlers.Call) error {
	bot, err := k.platform(c)
	if err != nil {
		return err
	}
	if bot == nil {
		return httpsig.ErrNoKeys
	}
	body, err := json.Marshal(bot.Directory())
	if err != nil {
		return err
	}
	signatures, digest := bot.SignDirectory(body, k.Now())
	k.public(c)
	h := c.Writer.Header()
	h.Set(httpsig.DigestField, digest)
	for _, header := range httpsig.Headers(signatures) {
		h.Set(header.Name, header.Value)
	}
	c.Data(http.StatusOK, httpsig.DirectoryType, body)
	return nil
}

// platform is the bot, read once in a while for all requests; nil: the operators don't sign as one.
func (k *keys) platform(c *handlers.Call) (*httpsig.Bot, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.read.IsZero() && k.Now().Sub(k.read).Abs() < readEvery {
		return k.bot, nil
	}
	bot, err := endpoints.ReadBot(c.Ctx(), k.DB, k.Keys, k.BaseURL)
	if err == nil {
		k.bot, k.read = bot, k.Now()
	}
	return bot, err
}
