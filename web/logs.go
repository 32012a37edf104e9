package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// newLogger writes one line a record, as JSON or text, and removes secrets: the values of keys that name one, and
// everything with the shape of one inside any text. It is the last line of defense; the first is to log none.
func newLogger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return slog.New(guarded{slog.NewTextHandler(w, options)})
	}
	return slog.New(guarded{slog.NewJSONHandler(w, options)})
}

// guarded is a handler that removes secrets. It changes a record only if necessary, since there is a line for every
// attempt and hardly any of them needs a change: a function for each attribute (slog.HandlerOptions) would cost twice
// as much as the line.
type guarded struct{ slog.Handler }

func (g guarded) Handle(ctx context.Context, r slog.Record) error {
	clean := !mayHoldSecret(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		clean = clean && isClean(a)
		return clean
	})
	if clean {
		return g.Handler.Handle(ctx, r)
	}
	safe := slog.NewRecord(r.Time, r.Level, scrub(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		safe.AddAttrs(guard(a))
		return true
	})
	return g.Handler.Handle(ctx, safe)
}

func (g guarded) WithAttrs(attrs []slog.Attr) slog.Handler {
	safe := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		safe[i] = guard(a)
	}
	return guarded{g.Handler.WithAttrs(safe)}
}

func (g guarded) WithGroup(name string) slog.Handler { return guarded{g.Handler.WithGroup(name)} }

// What names of attributes end in when their value is a secret, without case, hyphens and underscores.
var secretNames = []string{
	"authorization", "cookie", "cookies", "secret", "secrets", "token", "password", "passphrase",
	"apikey", "masterkey", "privatekey", "databaseurl", "listenurl", "credentials",
}

var plainName = strings.NewReplacer("-", "", "_", "", ".", "")

// namesSecret is called for every attribute of every line; each of the few keys is classified once.
func namesSecret(key string) bool {
	if known, ok := classifiedNames.Load(key); ok {
		return known.(bool)
	}
	plain := plainName.Replace(strings.ToLower(key))
	secret := slices.ContainsFunc(secretNames, func(name string) bool { return strings.HasSuffix(plain, name) })
	if classified.Add(1) <= maxClassified {
		classifiedNames.Store(key, secret)
	}
	return secret
}

// maxClassified bounds the cache: keys are constants, but a header's name may be logged too.
const maxClassified = 1000

var (
	classifiedNames sync.Map
	classified      atomic.Int64
)

// isClean reports whether guard would leave an attribute as it is.
func isClean(a slog.Attr) bool {
	switch a.Value.Kind() {
	case slog.KindString:
		return !mayHoldSecret(a.Value.String()) && !namesSecret(a.Key)
	case slog.KindBool, slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindTime:
		return !namesSecret(a.Key)
	}
	return false
}

// guard makes one attribute safe to write.
func guard(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	if a.Value.Kind() == slog.KindGroup {
		members := a.Value.Group()
		safe := make([]slog.Attr, len(members))
		for i, member := range members {
			safe[i] = guard(member)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(safe...)}
	}
	if namesSecret(a.Key) {
		if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
			return a
		}
		return slog.String(a.Key, redacted)
	}
	switch a.Value.Kind() {
	case slog.KindString:
		if s := a.Value.String(); mayHoldSecret(s) {
			return slog.String(a.Key, scrub(s))
		}
	case slog.KindDuration:
		return slog.String(a.Key, a.Value.Duration().String()) // JSON would have bare nanoseconds
	case slog.KindAny:
		return slog.Attr{Key: a.Key, Value: guardAny(a.Value)}
	}
	return a
}

// guardAny looks into values that a handler would encode by itself.
func guardAny(v slog.Value) slog.Value {
	switch x := v.Any().(type) {
	case error:
		return slog.StringValue(scrub(x.Error()))
	case http.Header:
		safe := make(map[string]string, len(x))
		for name, values := range x {
			if safe[name] = redacted; !namesSecret(name) {
				safe[name] = scrub(strings.Join(values, ", "))
			}
		}
		return slog.AnyValue(safe)
	case []byte:
		return slog.StringValue(scrub(string(x)))
	default:
		if b, err := json.Marshal(x); err == nil && mayHoldSecret(string(b)) {
			return slog.StringValue(scrub(string(b)))
		}
	}
	return v
}

// Secrets with a recognizable form: signing secrets, private keys, our API keys, credentials of an Authorization
// header, and passwords in URLs. The first group stays, so that a reader sees the kind.
var (
	secretShapes = regexp.MustCompile(`(whsec_|whsk_|phk_|php_|Bearer |Basic )[A-Za-z0-9+/=_.~-]{8,}`)
	urlPassword  = regexp.MustCompile(`(://[^\s:/?#@]*:)[^\s/?#@]+@`)
)

// mayHoldSecret is a quick look that spares almost every text the patterns.
func mayHoldSecret(s string) bool { return hasShape(s) || hasLogin(s) }

func hasShape(s string) bool {
	return strings.Contains(s, "whs") || strings.Contains(s, "phk_") || strings.Contains(s, "php_") ||
		strings.Contains(s, "Bearer ") || strings.Contains(s, "Basic ")
}

func hasLogin(s string) bool {
	i := strings.Index(s, "://")
	return i >= 0 && strings.IndexByte(s[i:], '@') >= 0
}

func scrub(s string) string {
	if hasShape(s) {
		s = secretShapes.ReplaceAllString(s, "${1}"+redacted)
	}
	if hasLogin(s) {
		s = urlPassword.ReplaceAllString(s, "${1}"+redacted+"@")
	}
	return s
}
