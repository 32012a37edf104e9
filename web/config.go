package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgconn"

	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/account"
	"posthorn/domain/compare"
	"posthorn/domain/egress"
	"posthorn/domain/event"
	"posthorn/domain/home"
	"posthorn/handlers"
	"posthorn/handlers/admin"
	"posthorn/handlers/auth"
	"posthorn/handlers/openid"
	"posthorn/worker/history"
	"posthorn/worker/send"
)

// Config is everything that the environment says, one field for each variable, with the text that `serve --help`
// prints. An empty variable counts as unset. loadConfig checks it as a whole; nothing else reads the environment.
type Config struct {
	Addr              string        `env:"POSTHORN_ADDR" envDefault:"127.0.0.1:8080" help:"address of the web server"`
	BaseURL           string        `env:"POSTHORN_BASE_URL" help:"public URL, for links and cookies; default: from the address"` // empty: from the address, once it is known
	MetricsAddr       string        `env:"POSTHORN_METRICS_ADDR" envDefault:"127.0.0.1:9090" help:"address of Prometheus metrics and pprof; off disables them"`
	DatabaseURL       Secret        `env:"POSTHORN_DATABASE_URL" help:"your PostgreSQL; default: Posthorn runs a private one"` // empty: embedded PostgreSQL
	DatabaseListenURL Secret        `env:"POSTHORN_DATABASE_LISTEN_URL" help:"direct connection for LISTEN, if the first one is a pooler"`
	AdminDatabaseURL  Secret        `env:"POSTHORN_ADMIN_DATABASE_URL" help:"an administrator of the server, for posthorn migrate roles alone"`
	DataDir           string        `env:"POSTHORN_DATA_DIR" help:"folder of the private PostgreSQL and generated keys"`
	MasterKey         Secret        `env:"POSTHORN_MASTER_KEY" help:"encrypts secrets: 32 bytes in base64; several separated by commas, newest first; generated for the private PostgreSQL"`
	EgressAllow       string        `env:"POSTHORN_EGRESS_ALLOW" help:"private networks, addresses, or ip:port that deliveries can reach, including plain http"`
	EgressProxyAllow  string        `env:"POSTHORN_EGRESS_PROXY_ALLOW" help:"private networks, addresses, or ip:port at which egress proxies can be; deliveries can't reach them"`
	EgressNAT64       string        `env:"POSTHORN_EGRESS_NAT64" help:"IPv6 prefixes of your network's NAT64, if it has another than 64:ff9b::/96"`
	Mail              string        `env:"POSTHORN_MAIL" envDefault:"console" help:"how email is sent: console (not sent; shown at /dev/mail), resend, or smtp"`
	MailFrom          string        `env:"POSTHORN_MAIL_FROM" help:"sender of emails"`
	ResendAPIKey      Secret        `env:"RESEND_API_KEY" help:"API key of Resend"`
	ResendURL         string        `env:"POSTHORN_RESEND_URL" help:"URL of Resend's API"`
	SMTPURL           Secret        `env:"POSTHORN_SMTP_URL" help:"smtp://user:password@host:587, or smtps://"` // may hold a password
	CronSecret        Secret        `env:"POSTHORN_CRON_SECRET" help:"bearer token with which an external scheduler triggers the sweeps by POST /internal/sweep"`
	Signup            string        `env:"POSTHORN_SIGNUP" help:"who can create a tenant: open or invite; open on loopback"`
	FrameAncestors    string        `env:"POSTHORN_FRAME_ANCESTORS" help:"origins that can embed a customer's portal in an iframe, separated by commas: https://app.example.com"`
	ConsoleHost       string        `env:"POSTHORN_CONSOLE_HOST" help:"separate host name of the operators' console, such as ops.example.com; default: below the public URL"`
	OIDCIssuer        string        `env:"POSTHORN_OIDC_ISSUER" help:"the OpenID provider with which operators sign in to the console"`
	OIDCClientID      string        `env:"POSTHORN_OIDC_CLIENT_ID" help:"what Posthorn is called there"`
	OIDCClientSecret  Secret        `env:"POSTHORN_OIDC_CLIENT_SECRET" help:"its secret there; unset for a public client"`
	OIDCOperators     string        `env:"POSTHORN_OIDC_OPERATORS" help:"the claim and value that make a person an operator, as groups=posthorn-operators; unset, only operators who exist sign in"`
	OIDCOnly          string        `env:"POSTHORN_OIDC_ONLY" envDefault:"off" help:"operators sign in with the provider only: on or off"`
	OIDCBreakGlass    string        `env:"POSTHORN_OIDC_BREAK_GLASS" help:"addresses of operators who can still sign in with a password, separated by commas"`
	EgressAddresses   string        `env:"POSTHORN_EGRESS_ADDRESSES" help:"source addresses or networks of requests to endpoints, separated by commas; published for receivers' firewalls"`
	TrustedProxies    string        `env:"POSTHORN_TRUSTED_PROXIES" help:"networks or addresses of the proxies in front, separated by commas, whose X-Forwarded-For is trusted; default: none"`
	LogLevel          slog.Level    `env:"POSTHORN_LOG_LEVEL" envDefault:"info" help:"debug, info, warn, or error"`
	LogFormat         string        `env:"POSTHORN_LOG_FORMAT" help:"json or text; default: text on a terminal, otherwise json"` // empty: text on a terminal, else JSON
	WorkerName        string        `env:"POSTHORN_WORKER_NAME" help:"name that operators see; default: the host's name"`
	ShutdownDelay     time.Duration `env:"POSTHORN_SHUTDOWN_DELAY" envDefault:"0s" help:"how long a stop goes on accepting connections while /readyz says stopping, so that load balancers notice"`
	ShutdownGrace     time.Duration `env:"POSTHORN_SHUTDOWN_GRACE" envDefault:"20s" help:"how long a stop waits for requests in flight"`
	BodyMemory        int64         `env:"POSTHORN_BODY_MEMORY" envDefault:"256" help:"maximum MiB of request bodies in memory; requests beyond it get 503"`
	BodyMemorySender  int64         `env:"POSTHORN_BODY_MEMORY_PER_SENDER" envDefault:"64" help:"maximum MiB of these for one tenant, platform key, or person"`
	SvixHost          string        `env:"POSTHORN_SVIX_HOST" help:"separate host name at which the Svix API has no path of its own, such as svix.example.com, for libraries that drop the path"`
	SvixAPI           string        `env:"POSTHORN_SVIX_API" envDefault:"on" help:"Svix's API at /svix/api/v1, for programs that use its libraries: on or off"`
	TracesURL         string        `env:"POSTHORN_TRACES_URL" help:"URL for OpenTelemetry traces (OTLP over HTTP), such as http://collector:4318; default: no traces"`
	TracesHeaders     Secret        `env:"POSTHORN_TRACES_HEADERS" help:"headers of its requests, separated by commas: Authorization=Bearer abc"`
	TracesRatio       float64       `env:"POSTHORN_TRACES_RATIO" envDefault:"0.1" help:"fraction of traces to record, from 0 to 1, unless the producer has decided"`
	ServiceName       string        `env:"OTEL_SERVICE_NAME" help:"service.name of the traces; default: posthorn, posthorn-web, or posthorn-worker"`
	ServiceAttributes string        `env:"OTEL_RESOURCE_ATTRIBUTES" help:"further attributes of the traces' resource, separated by commas: deployment.environment.name=eu"`
	Home              string        `env:"POSTHORN_HOME" help:"name of this home, if several installations share the tenants: eu1"`
	Homes             string        `env:"POSTHORN_HOMES" help:"all homes with their public addresses, separated by commas: eu1=https://eu1.example.com,eu2=https://eu2.example.com"`
	HomeKeys          Secret        `env:"POSTHORN_HOME_KEYS" help:"platform keys of the other homes, with which the console reads their numbers: eu2=php_eu2_..., separated by commas"`
	HistoryURL        string        `env:"POSTHORN_HISTORY_URL" help:"where old days of history are kept outside PostgreSQL: s3://bucket/prefix, or file:///folder that all workers share; default: they stay"`
	HistoryAfterDays  int64         `env:"POSTHORN_HISTORY_AFTER_DAYS" envDefault:"30" help:"days of history that stay in PostgreSQL, from 2 to 3650"`
	HistoryBackDays   int64         `env:"POSTHORN_HISTORY_BACK_DAYS" envDefault:"7" help:"days for which history that was brought back stays in PostgreSQL, from 1 to 365"`
	HistoryEndpoint   string        `env:"POSTHORN_HISTORY_ENDPOINT" help:"URL of the S3-compatible server; default: Amazon S3"`
	HistoryRegion     string        `env:"POSTHORN_HISTORY_REGION" help:"its region; default: read from the storage"`
	HistoryAccessKey  string        `env:"POSTHORN_HISTORY_ACCESS_KEY" help:"its access key; default: AWS_ACCESS_KEY_ID, or the role of the machine"`
	HistorySecretKey  Secret        `env:"POSTHORN_HISTORY_SECRET_KEY" help:"the secret of the access key"`
	MaxLargePayload   int64         `env:"POSTHORN_MAX_LARGE_PAYLOAD" envDefault:"0" help:"largest event in bytes, where the data of those above 262144 goes to the storage of POSTHORN_HISTORY_URL: up to 10485760; 0: larger events are rejected"`
	DemoAddr          string        `env:"POSTHORN_DEMO_ADDR" envDefault:"127.0.0.1:9100" help:"address of the receivers of serve --demo, on this machine"`
	PostgresArchive   string        `env:"POSTHORN_POSTGRES_ARCHIVE" help:"PostgreSQL to install if the machine has none: a file or an https URL"`
	PostgresSHA256    string        `env:"POSTHORN_POSTGRES_ARCHIVE_SHA256" help:"its SHA-256"`

	Egress    egress.Policy    // EgressAllow, read
	Published []netip.Prefix   // EgressAddresses, read
	Proxies   handlers.Proxies // TrustedProxies, read
	Others    []home.Home      // Homes, read, without this one
	self      home.Home        // this one
	History   history.Store    // HistoryURL, opened; nil: history stays in the database
	// Suspects are variables that nothing reads but that look like one that is read, with the name they resemble.
	Suspects map[string]string
}

// Variables of the client commands and of the tests: known, and not the server's.
var otherVariables = []string{"POSTHORN_URL", "POSTHORN_API_KEY", "POSTHORN_TENANT", "POSTHORN_BIN", "POSTHORN_SOAK", toDatabaseVariable, toMasterKeyVariable}

// ConfigError is every wrong value at once. Its text is for the terminal and holds no secret.
type ConfigError struct{ Problems []Problem }

// Problem is one variable that can't be used, and how to fix it.
type Problem struct{ Variable, Detail string }

func (e *ConfigError) Error() string {
	var b strings.Builder
	if len(e.Problems) == 1 {
		b.WriteString("a setting is wrong:")
	} else {
		fmt.Fprintf(&b, "%d settings are wrong:", len(e.Problems))
	}
	for _, p := range e.Problems {
		fmt.Fprintf(&b, "\n  %s %s", p.Variable, p.Detail)
	}
	return b.String()
}

// loadConfig reads the environment (as os.Environ gives it). The error is a *ConfigError that names every wrong value.
func loadConfig(environ []string) (Config, error) {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if value = strings.TrimSpace(value); value != "" {
			values[name] = value
		}
	}
	var c Config
	var problems []Problem
	report := func(variable, format string, args ...any) {
		problems = append(problems, Problem{variable, fmt.Sprintf(format, args...)})
	}
	if err := env.ParseWithOptions(&c, env.Options{Environment: values}); err != nil {
		var all env.AggregateError
		if !errors.As(err, &all) {
			return Config{}, err
		}
		for _, one := range all.Errors {
			problems = append(problems, explainParse(one, values))
		}
	}
	c.checkAddresses(report)
	c.checkDatabase(report)
	c.checkMail(report)
	c.checkNetwork(report)
	c.checkSignup(report)
	c.checkProcess(report)
	c.checkTraces(report)
	c.checkHomes(report)
	c.checkHistory(report)
	c.checkOIDC(report)
	c.Suspects = suspects(values)
	if len(problems) > 0 {
		slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Variable, b.Variable) })
		return Config{}, &ConfigError{slices.CompactFunc(problems, func(a, b Problem) bool { return a.Variable == b.Variable })}
	}
	return c, nil
}

// reporter notes that a variable is wrong, in words that follow its name.
type reporter func(variable, format string, args ...any)

func (c *Config) checkAddresses(report reporter) {
	if why := addressFault(c.Addr); why != "" {
		report("POSTHORN_ADDR", "%s", why)
	}
	if c.SvixAPI != "on" && c.SvixAPI != "off" {
		report("POSTHORN_SVIX_API", "is %q. Write on or off.", c.SvixAPI)
	}
	c.checkHost("POSTHORN_SVIX_HOST", c.SvixHost, "svix.example.com", "the Svix API", report)
	switch {
	case c.SvixHost == "":
	case c.SvixAPI == "off":
		report("POSTHORN_SVIX_HOST", "names a host for the Svix API, which POSTHORN_SVIX_API turns off. Unset one of them.")
	case strings.EqualFold(c.SvixHost, c.ConsoleHost):
		report("POSTHORN_SVIX_HOST", "is the host of POSTHORN_CONSOLE_HOST. Give the Svix API a name of its own, or leave it unset.")
	}
	if c.MetricsAddr != "off" {
		if why := addressFault(c.MetricsAddr); why != "" {
			report("POSTHORN_METRICS_ADDR", "%s, or off.", strings.TrimSuffix(why, "."))
		} else if c.MetricsAddr == c.Addr && !strings.HasSuffix(c.Addr, ":0") {
			report("POSTHORN_METRICS_ADDR", "is the same address as POSTHORN_ADDR. Give metrics a port of their own, or off.")
		}
	}
	if at, err := netip.ParseAddrPort(c.DemoAddr); err != nil || !at.Addr().IsLoopback() || at.Port() == 0 {
		report("POSTHORN_DEMO_ADDR", "isn't an address and port of this machine. Use one such as 127.0.0.1:9101.")
	}
	if c.BaseURL == "" {
		return
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.User != nil:
		report("POSTHORN_BASE_URL", "is not a web address. Write the one that people type, as https://posthorn.example.com.")
	case u.Path != "", u.RawQuery != "", u.Fragment != "":
		report("POSTHORN_BASE_URL", "has a path. Posthorn needs a host of its own: write https://posthorn.example.com.")
	}
}

// addressFault returns the problem of a listen address, or an empty text.
func addressFault(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err == nil && strings.ContainsAny(host, "/ @") {
		err = errors.New("no host")
	}
	if err != nil {
		return fmt.Sprintf("is %q, which is not an address to listen on. Write host:port, as 127.0.0.1:8080 or :8080.", addr)
	}
	return ""
}

func (c *Config) checkDatabase(report reporter) {
	if c.DatabaseURL != "" {
		if why := databaseFault(c.DatabaseURL); why != "" {
			report("POSTHORN_DATABASE_URL", "%s", why)
		}
	}
	switch {
	case c.DatabaseListenURL == "":
	case c.DatabaseURL == "":
		report("POSTHORN_DATABASE_LISTEN_URL", "is set and POSTHORN_DATABASE_URL is not. Set both, or neither for a private PostgreSQL.")
	default:
		if why := databaseFault(c.DatabaseListenURL); why != "" {
			report("POSTHORN_DATABASE_LISTEN_URL", "%s", why)
		}
	}
	if c.MasterKey != "" {
		if _, err := seal.NewRing(c.MasterKey.Reveal()); err != nil {
			report("POSTHORN_MASTER_KEY", "is not one or more keys of 32 bytes in base64, each once, separated by commas. Make one with `openssl rand -base64 32`.")
		}
	}
	if sum := c.PostgresSHA256; sum != "" && !isHex(sum, 64) {
		report("POSTHORN_POSTGRES_ARCHIVE_SHA256", "is not a SHA-256: write its 64 hexadecimal digits, as `sha256sum` prints them.")
	}
	if strings.HasPrefix(c.PostgresArchive, "http") && c.PostgresSHA256 == "" {
		report("POSTHORN_POSTGRES_ARCHIVE", "is downloaded, so POSTHORN_POSTGRES_ARCHIVE_SHA256 must say its SHA-256.")
	}
}

// databaseFault returns an error for a bad database URL, or nil. It leaves out the driver's text if that may quote the
// URL and with it the password.
func databaseFault(u Secret) string {
	_, err := pgconn.ParseConfig(u.Reveal())
	var file *os.PathError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &file):
		return fmt.Sprintf("names a file that can't be read (%v).", file)
	}
	return "is not a PostgreSQL URL. Write postgres://user:password@host:5432/database; %-escape what is not a letter or digit in the password."
}

func (c *Config) checkMail(report reporter) {
	if c.MailFrom != "" {
		if _, err := mail.ParseAddress(c.MailFrom); err != nil {
			report("POSTHORN_MAIL_FROM", "is not an e-mail address. Write it as Posthorn <hooks@example.com>.")
		}
	} else if c.Mail == "resend" || c.Mail == "smtp" {
		report("POSTHORN_MAIL_FROM", "is not set. Mail needs a sender: write it as Posthorn <hooks@example.com>.")
	}
	switch c.Mail {
	case "console":
	case "resend":
		if c.ResendAPIKey == "" {
			report("RESEND_API_KEY", "is not set, and POSTHORN_MAIL is resend. Set the key that Resend shows, or POSTHORN_MAIL=console.")
		}
		if u, err := url.Parse(c.ResendURL); c.ResendURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" &&
			u.Scheme != "https") {
			report("POSTHORN_RESEND_URL", "is not a web address. Write https://api.resend.com, or leave it unset.")
		}
	case "smtp":
		u, err := url.Parse(c.SMTPURL.Reveal())
		if c.SMTPURL == "" || err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
			report("POSTHORN_SMTP_URL", "is not a mail server, and POSTHORN_MAIL is smtp. Write smtp://user:password@host:587 or smtps://user:password@host:465.")
		}
	default:
		report("POSTHORN_MAIL", "is %q. Write console (mails go to the log), resend or smtp.", c.Mail)
	}
}

// minCronSecret is the fewest characters of a secret that can be tried from outside.
const minCronSecret = 16

// checkNetwork reads whom the server trusts and where it may connect to.
func (c *Config) checkNetwork(report reporter) {
	policy, err := egress.ParseAllow(c.EgressAllow)
	if err != nil {
		report("POSTHORN_EGRESS_ALLOW", "is wrong: %s.", strings.TrimPrefix(err.Error(), "egress allow list: "))
	}
	if policy, err = policy.WithProxies(c.EgressProxyAllow); err != nil {
		report("POSTHORN_EGRESS_PROXY_ALLOW", "is wrong: %s.", strings.TrimPrefix(err.Error(), "egress allow list: "))
	}
	if c.Egress, err = policy.WithNAT64(c.EgressNAT64); err != nil {
		report("POSTHORN_EGRESS_NAT64", "is wrong: %s.", err)
	}
	if c.Proxies, err = handlers.ParseProxies(c.TrustedProxies); err != nil {
		report("POSTHORN_TRUSTED_PROXIES", "is wrong: %s.", err)
	}
	for _, origin := range c.frameAncestors() {
		if !isOrigin(origin) {
			report("POSTHORN_FRAME_ANCESTORS", "holds %q, which is no origin. Write https://app.example.com without a path, and separate several by commas.", origin)
		}
	}
	c.checkConsole(report)
}

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && text == u.Scheme+"://"+u.Host &&
		!strings.ContainsAny(text, "'; ")
}

func (c *Config) checkSignup(report reporter) {
	switch c.Signup {
	case "open", "invite":
	case "":
		// Only the person who started it can reach a loopback address.
		if c.Signup = "invite"; isLoopback(c.Addr) {
			c.Signup = "open"
		}
	default:
		report("POSTHORN_SIGNUP", "is %q. Write open (anybody may create a tenant) or invite.", c.Signup)
	}
}

func (c *Config) checkOIDC(report reporter) {
	if c.OIDCOnly != "on" && c.OIDCOnly != "off" {
		report("POSTHORN_OIDC_ONLY", "is %q. Write on or off.", c.OIDCOnly)
	}
	if c.OIDCIssuer == "" {
		set := map[string]bool{
			"POSTHORN_OIDC_CLIENT_ID":     c.OIDCClientID != "",
			"POSTHORN_OIDC_CLIENT_SECRET": c.OIDCClientSecret != "",
			"POSTHORN_OIDC_OPERATORS":     c.OIDCOperators != "",
			"POSTHORN_OIDC_ONLY":          c.OIDCOnly == "on",
			"POSTHORN_OIDC_BREAK_GLASS":   c.OIDCBreakGlass != "",
		}
		for _, name := range slices.Sorted(maps.Keys(set)) {
			if set[name] {
				report(name, "is set and POSTHORN_OIDC_ISSUER is not. Set both, or neither.")
			}
		}
		return
	}
	u, err := url.Parse(c.OIDCIssuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" &&
		!handlers.Development(u.Scheme+"://"+u.Host) {
		report("POSTHORN_OIDC_ISSUER", "is no https URL. Write it exactly as the provider's configuration names it, as https://login.example.com.")
	}
	if c.OIDCClientID == "" {
		report("POSTHORN_OIDC_CLIENT_ID", "is not set, and POSTHORN_OIDC_ISSUER is. Write the client id that the provider shows.")
	}
	if claim, value, _ := strings.Cut(c.OIDCOperators, "="); c.OIDCOperators != "" && (strings.TrimSpace(claim) == "" ||
		strings.TrimSpace(value) == "") {
		report("POSTHORN_OIDC_OPERATORS", "is %q. Write a claim and its value, as groups=posthorn-operators.", c.OIDCOperators)
	}
	for _, address := range c.breakGlass() {
		if _, err := mail.ParseAddress(address); err != nil {
			report("POSTHORN_OIDC_BREAK_GLASS", "holds %q, which is no email address. Separate addresses with commas, such as ada@example.com,olga@example.com.", address)
		}
	}
}

// breakGlass lists the addresses of OIDCBreakGlass, in lower case.
func (c *Config) breakGlass() []string {
	all := strings.FieldsFunc(strings.ToLower(c.OIDCBreakGlass), func(r rune) bool { return r == ',' || r == ' ' })
	for i, address := range all {
		if email, err := account.Email(address); err == nil {
			all[i] = email
		}
	}
	return all
}

// operatorSSO is the operators' provider, or nil. base is the server's public URL.
func (c *Config) operatorSSO(base string) *auth.SSO {
	if c.OIDCIssuer == "" {
		return nil
	}
	claim, value, _ := strings.Cut(c.OIDCOperators, "=")
	return &auth.SSO{
		Client:     openid.New(send.NewTrustedClient(), time.Now),
		Value:      strings.TrimSpace(value),
		Only:       c.OIDCOnly == "on",
		BreakGlass: c.breakGlass(),
		Provider: openid.Provider{
			Issuer:    c.OIDCIssuer,
			ClientID:  c.OIDCClientID,
			Secret:    c.OIDCClientSecret.Reveal(),
			RoleClaim: strings.TrimSpace(claim),
			Callback:  c.consoleURL(base) + admin.Root + "/sso/callback",
		},
	}
}

func (c *Config) checkProcess(report reporter) {
	if c.CronSecret != "" && len(c.CronSecret) < minCronSecret {
		report("POSTHORN_CRON_SECRET", "is shorter than %d characters. Make one with `openssl rand -hex 32`.", minCronSecret)
	}
	if c.LogFormat != "" && c.LogFormat != "json" && c.LogFormat != "text" {
		report("POSTHORN_LOG_FORMAT", "is %q. Write json or text.", c.LogFormat)
	}
	if len(c.WorkerName) > 100 || strings.ContainsFunc(c.WorkerName, func(r rune) bool {
		return r < ' ' ||
			r == 0x7f
	}) {
		report("POSTHORN_WORKER_NAME", "is longer than 100 bytes or holds control characters. Write a short name, as the host's.")
	}
	c.checkBodies(report)
	if c.ShutdownDelay < 0 || c.ShutdownDelay > time.Minute {
		report("POSTHORN_SHUTDOWN_DELAY", "is %s. Write a time from 0s to 1m.", c.ShutdownDelay)
	}
	if c.ShutdownGrace < time.Second || c.ShutdownGrace > time.Hour {
		report("POSTHORN_SHUTDOWN_GRACE", "is %s. Write a time from 1s to 1h.", c.ShutdownGrace)
	}
}

// checkHomes reads the homes. The two variables go together.
func (c *Config) checkHomes(report reporter) {
	if c.Home == "" && c.Homes == "" {
		return
	}
	if !home.ValidName(c.Home) {
		report("POSTHORN_HOME", "is %q. Write the name of this home: %s.", c.Home, home.Rule)
	}
	all, err := home.Parse(c.Homes)
	if err != nil {
		report("POSTHORN_HOMES", "%s.", err)
		return
	}
	for _, h := range all {
		if h.Name != c.Home {
			c.Others = append(c.Others, h)
		} else {
			c.self = h
		}
	}
	if len(c.Others) == len(all) && c.Home != "" {
		report("POSTHORN_HOMES", "doesn't name this home, %s. Write all homes, the same in each.", c.Home)
	}
	for item := range strings.SplitSeq(c.HomeKeys.Reveal(), ",") {
		name, key, _ := strings.Cut(strings.TrimSpace(item), "=")
		i := slices.IndexFunc(c.Others, func(h home.Home) bool { return h.Name == name })
		switch {
		case item == "":
		case i < 0:
			report("POSTHORN_HOME_KEYS", "has a key for a home that POSTHORN_HOMES doesn't list beside this one. Write name=key, separated by commas.")
		case !accounts.LooksLikeKey(key) || !accounts.IsPlatformKey(key) || home.OfKey(key) != name && home.OfKey(key) != "":
			report("POSTHORN_HOME_KEYS", "has no platform key of the home %s. Create one there: posthorn key create --platform --scopes webhooks:read.", name)
		default:
			c.Others[i].Key = key
		}
	}
}

// checkHistory opens the place of old days. It connects to nothing.
func (c *Config) checkHistory(report reporter) {
	if c.HistoryAfterDays < 2 || c.HistoryAfterDays > 3650 {
		report("POSTHORN_HISTORY_AFTER_DAYS", "is %d. Write a number of days from 2 to 3650.", c.HistoryAfterDays)
	}
	if c.HistoryBackDays < 1 || c.HistoryBackDays > 365 {
		report("POSTHORN_HISTORY_BACK_DAYS", "is %d. Write a number of days from 1 to 365.", c.HistoryBackDays)
	}
	if (c.HistoryAccessKey == "") != (c.HistorySecretKey == "") {
		report("POSTHORN_HISTORY_SECRET_KEY", "and POSTHORN_HISTORY_ACCESS_KEY go together. Set both, or neither for AWS_ACCESS_KEY_ID or the role of the machine.")
	}
	if n := c.MaxLargePayload; n != 0 && (n <= event.DefaultMaxPayload || n > event.MaxLargePayload) {
		report("POSTHORN_MAX_LARGE_PAYLOAD", "is %d. Write a number of bytes from %d to %d, or 0.", n, event.DefaultMaxPayload+1, event.MaxLargePayload)
	}
	if c.HistoryURL == "" {
		if c.MaxLargePayload != 0 {
			report("POSTHORN_MAX_LARGE_PAYLOAD", "needs storage. Set POSTHORN_HISTORY_URL too.")
		}
		return
	}
	store, err := history.Open(history.Where{
		URL:      c.HistoryURL,
		Endpoint: c.HistoryEndpoint,
		Region:   c.HistoryRegion,
		Key:      c.HistoryAccessKey,
		Secret:   c.HistorySecretKey.Reveal(),
	})
	if err != nil {
		report("POSTHORN_HISTORY_URL", "%v.", err)
		return
	}
	c.History = store
}

// minBodyMemory holds one of the largest batches, in MiB.
const minBodyMemory = 16

func (c *Config) checkBodies(report reporter) {
	const most = 1 << 20
	if c.BodyMemory < minBodyMemory || c.BodyMemory > most {
		report("POSTHORN_BODY_MEMORY", "is %d. Write a number of MiB from %d to %d.", c.BodyMemory, minBodyMemory, most)
	}
	if c.BodyMemorySender < minBodyMemory || c.BodyMemorySender > most {
		report("POSTHORN_BODY_MEMORY_PER_SENDER", "is %d. Write a number of MiB from %d to %d.", c.BodyMemorySender, minBodyMemory, most)
	}
}

// bodies are the bounds of request bodies in memory.
func (c *Config) bodies() handlers.Bodies {
	return handlers.Bodies{Process: c.BodyMemory << 20, Sender: c.BodyMemorySender << 20}
}

// checkConsole checks the host of the console, and the published addresses that deliveries come from.
func (c *Config) checkConsole(report reporter) {
	c.checkHost("POSTHORN_CONSOLE_HOST", c.ConsoleHost, "ops.example.com", "the console", report)
	for _, text := range strings.FieldsFunc(c.EgressAddresses, func(r rune) bool { return r == ',' || r == ' ' }) {
		p, err := netip.ParsePrefix(text)
		if ip, single := netip.ParseAddr(text); single == nil {
			p, err = netip.PrefixFrom(ip, ip.BitLen()), nil
		}
		if err != nil || p != p.Masked() {
			report("POSTHORN_EGRESS_ADDRESSES", "holds %q, which is neither an address nor a network. Write 203.0.113.7 or 203.0.113.0/28, separated by commas.", text)
			continue
		}
		c.Published = append(c.Published, p)
	}
}

// checkHost reads the name of a host that a part of the server has for itself.
func (c *Config) checkHost(variable, host, example, part string, report reporter) {
	if host == "" {
		return
	}
	base, _ := url.Parse(c.BaseURL)
	u, err := url.Parse("https://" + host)
	switch {
	case err != nil, u.Host != host, u.Hostname() == "":
		report(variable, "is %q, which is no host name. Write %s, without https:// and without a path.", host, example)
	case base != nil && strings.EqualFold(base.Host, host):
		report(variable, "is the host of POSTHORN_BASE_URL. Give %s a name of its own, or leave it unset.", part)
	}
}

// consoleURL is where the console is, on a server that people reach by base.
func (c *Config) consoleURL(base string) string {
	if scheme, _, found := strings.Cut(base, "://"); found && c.ConsoleHost != "" {
		return scheme + "://" + c.ConsoleHost
	}
	return base
}

// frameAncestors lists the origins of FrameAncestors.
func (c *Config) frameAncestors() []string {
	return strings.FieldsFunc(c.FrameAncestors, func(r rune) bool { return r == ',' || r == ' ' })
}

// embedded reports whether Posthorn runs a private PostgreSQL.
func (c *Config) embedded() bool { return c.DatabaseURL == "" }

// explainParse puts an error of the parser into plain words, with the variable's name in place of the field's.
func explainParse(err error, values map[string]string) Problem {
	var parse env.ParseError
	if !errors.As(err, &parse) {
		return Problem{"environment", "can't be read: " + err.Error()}
	}
	field, _ := reflect.TypeFor[Config]().FieldByName(parse.Name)
	name := field.Tag.Get("env")
	switch field.Type {
	case reflect.TypeFor[time.Duration]():
		return Problem{name, fmt.Sprintf("is %q, which is not a time span. Write it as 20s or 1m30s.", values[name])}
	case reflect.TypeFor[float64]():
		return Problem{name, fmt.Sprintf("is %q, which is not a number. Write it as 0.1.", values[name])}
	case reflect.TypeFor[int64]():
		return Problem{name, fmt.Sprintf("is %q, which is not a whole number.", values[name])}
	case reflect.TypeFor[slog.Level]():
		return Problem{name, fmt.Sprintf("is %q. Write debug, info, warn or error.", values[name])}
	}
	return Problem{name, "can't be read: " + parse.Err.Error()}
}

// variables are the names of those that the server reads.
func variables() (names []string) {
	for i, t := 0, reflect.TypeFor[Config](); i < t.NumField(); i++ {
		if name := t.Field(i).Tag.Get("env"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// suspects finds variables that look like a mistyped one of ours. It ignores other POSTHORN_ names: Kubernetes makes
// POSTHORN_SERVICE_HOST and its like from a service of that name.
func suspects(values map[string]string) map[string]string {
	known := slices.Concat(otherVariables, variables())
	found := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !strings.HasPrefix(name, "POSTHORN") || slices.Contains(known, name) {
			continue
		}
		for _, k := range known {
			if compare.Distance(name, k) <= 2 || strings.ReplaceAll(name, "_", "") == strings.ReplaceAll(k, "_", "") {
				found[name] = k
				break
			}
		}
	}
	return found
}

func isHex(s string, length int) bool {
	return len(s) == length && strings.Trim(strings.ToLower(s), "0123456789abcdef") == ""
}

// isLoopback reports whether only this machine can reach a listen address.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// variablesHelp lists the variables for people.
func variablesHelp() string {
	var b strings.Builder
	b.WriteString("Configuration is by environment variables; nothing is required.\n")
	for i, t := 0, reflect.TypeFor[Config](); i < t.NumField(); i++ {
		tag := t.Field(i).Tag
		name := tag.Get("env")
		if name == "" {
			continue
		}
		if byDefault := tag.Get("envDefault"); byDefault != "" {
			name += "=" + byDefault
		}
		// Indented twice, so that the lines stay as they are.
		fmt.Fprintf(&b, "\n    %s\n        %s\n", name, tag.Get("help"))
	}
	return b.String()
}
