package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

const testMasterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func TestConfigurationHasTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	c, err := loadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Addr != "127.0.0.1:8080" || c.MetricsAddr != "127.0.0.1:9090" || c.Mail != "console" || c.Signup != "open" ||
		c.LogLevel != slog.LevelInfo || c.ShutdownGrace != 20*time.Second || !c.embedded() {
		t.Errorf("%+v", c)
	}
}

func TestWrongSettingsNameTheVariableAndTheMend(t *testing.T) {
	t.Parallel()
	const url = "POSTHORN_DATABASE_URL=postgres://u@h/d"
	twoHomes := []string{"POSTHORN_HOME=eu1", "POSTHORN_HOMES=eu1=http://a,eu2=http://b"}
	for name, c := range map[string]struct {
		environ  []string
		variable string // the one that is wrong; empty: none
		fix      string // what its sentence must hold
	}{
		"home without the others":       {[]string{"POSTHORN_HOME=eu1"}, "POSTHORN_HOMES", "names no home"},
		"homes without this one":        {[]string{"POSTHORN_HOME=us", "POSTHORN_HOMES=eu1=http://a"}, "POSTHORN_HOMES", "doesn't name this home"},
		"a key of another home":         {append(twoHomes, "POSTHORN_HOME_KEYS=us=php_us_"+strings.Repeat("a", 49)), "POSTHORN_HOME_KEYS", "doesn't list"},
		"a key of the wrong home":       {append(twoHomes, "POSTHORN_HOME_KEYS=eu2=php_us_"+strings.Repeat("a", 49)), "POSTHORN_HOME_KEYS", "no platform key of the home eu2"},
		"a tenant's key of a home":      {append(twoHomes, "POSTHORN_HOME_KEYS=eu2=phk_eu2_"+strings.Repeat("a", 49)), "POSTHORN_HOME_KEYS", "webhooks:read"},
		"homes with keys":               {append(twoHomes, "POSTHORN_HOME_KEYS= eu2=php_eu2_"+strings.Repeat("a", 49)+","), "", ""},
		"homes without a name":          {[]string{"POSTHORN_HOMES=eu1=http://a"}, "POSTHORN_HOME", "lowercase"},
		"homes":                         {[]string{"POSTHORN_HOME=eu1", "POSTHORN_HOMES=eu1=http://a,eu2=http://b"}, "", ""},
		"history elsewhere":             {[]string{"POSTHORN_HISTORY_URL=ftp://a/b"}, "POSTHORN_HISTORY_URL", "s3://bucket/prefix"},
		"history of too few days":       {[]string{"POSTHORN_HISTORY_AFTER_DAYS=1"}, "POSTHORN_HISTORY_AFTER_DAYS", "from 2"},
		"history back for no day":       {[]string{"POSTHORN_HISTORY_BACK_DAYS=0"}, "POSTHORN_HISTORY_BACK_DAYS", "from 1"},
		"history without a secret":      {[]string{"POSTHORN_HISTORY_ACCESS_KEY=a"}, "POSTHORN_HISTORY_SECRET_KEY", "Set both"},
		"history":                       {[]string{"POSTHORN_HISTORY_URL=s3://bucket/a/b", "POSTHORN_HISTORY_ENDPOINT=http://127.0.0.1:9000"}, "", ""},
		"address without port":          {[]string{"POSTHORN_ADDR=localhost"}, "POSTHORN_ADDR", "host:port"},
		"address with a scheme":         {[]string{"POSTHORN_ADDR=http://localhost:80"}, "POSTHORN_ADDR", "host:port"},
		"address with a named port":     {[]string{"POSTHORN_ADDR=:http"}, "POSTHORN_ADDR", "host:port"},
		"port too high":                 {[]string{"POSTHORN_ADDR=:65536"}, "POSTHORN_ADDR", "host:port"},
		"all interfaces":                {[]string{"POSTHORN_ADDR=:8080"}, "", ""},
		"IPv6":                          {[]string{"POSTHORN_ADDR=[::1]:8080"}, "", ""},
		"spaces around":                 {[]string{"POSTHORN_ADDR= 127.0.0.1:80 "}, "", ""},
		"empty counts as unset":         {[]string{"POSTHORN_ADDR=", "POSTHORN_MAIL=", "POSTHORN_SHUTDOWN_GRACE="}, "", ""},
		"metrics off":                   {[]string{"POSTHORN_METRICS_ADDR=off"}, "", ""},
		"metrics on":                    {[]string{"POSTHORN_METRICS_ADDR=on"}, "POSTHORN_METRICS_ADDR", "or off"},
		"one address twice":             {[]string{"POSTHORN_ADDR=:80", "POSTHORN_METRICS_ADDR=:80"}, "POSTHORN_METRICS_ADDR", "a port of their own"},
		"any port twice":                {[]string{"POSTHORN_ADDR=:0", "POSTHORN_METRICS_ADDR=:0"}, "", ""},
		"base without scheme":           {[]string{"POSTHORN_BASE_URL=posthorn.example.com"}, "POSTHORN_BASE_URL", "https://"},
		"base with path":                {[]string{"POSTHORN_BASE_URL=https://example.com/hooks"}, "POSTHORN_BASE_URL", "host of its own"},
		"base with slash":               {[]string{"POSTHORN_BASE_URL=https://example.com/"}, "", ""},
		"base with password":            {[]string{"POSTHORN_BASE_URL=https://a:b@example.com"}, "POSTHORN_BASE_URL", "web address"},
		"database of another kind":      {[]string{"POSTHORN_DATABASE_URL=mysql://u@h/d"}, "POSTHORN_DATABASE_URL", "postgres://"},
		"database with bad port":        {[]string{"POSTHORN_DATABASE_URL=postgres://u:hunter2/x@h:99999999/d"}, "POSTHORN_DATABASE_URL", "%-escape"},
		"certificate that is missing":   {[]string{"POSTHORN_DATABASE_URL=postgres://u@h/d?sslmode=verify-full&sslrootcert=/no/such.pem"}, "POSTHORN_DATABASE_URL", "/no/such.pem"},
		"database":                      {[]string{url}, "", ""},
		"listen without database":       {[]string{"POSTHORN_DATABASE_LISTEN_URL=postgres://u@h/d"}, "POSTHORN_DATABASE_LISTEN_URL", "Set both"},
		"listen that is wrong":          {[]string{url, "POSTHORN_DATABASE_LISTEN_URL=h"}, "POSTHORN_DATABASE_LISTEN_URL", "postgres://"},
		"master key too short":          {[]string{"POSTHORN_MASTER_KEY=AAAA"}, "POSTHORN_MASTER_KEY", "openssl rand -base64 32"},
		"master key":                    {[]string{"POSTHORN_MASTER_KEY=" + testMasterKey}, "", ""},
		"proxies":                       {[]string{"POSTHORN_TRUSTED_PROXIES=10.0.0.0/8, ::1"}, "", ""},
		"proxy by name":                 {[]string{"POSTHORN_TRUSTED_PROXIES=nginx"}, "POSTHORN_TRUSTED_PROXIES", "10.0.0.0/8 or 127.0.0.1"},
		"everybody as proxy":            {[]string{"POSTHORN_TRUSTED_PROXIES=0.0.0.0/0"}, "POSTHORN_TRUSTED_PROXIES", "Name the proxies"},
		"egress name":                   {[]string{"POSTHORN_EGRESS_ALLOW=localhost:9000"}, "POSTHORN_EGRESS_ALLOW", "host names"},
		"egress proxies":                {[]string{"POSTHORN_EGRESS_PROXY_ALLOW=proxy.internal"}, "POSTHORN_EGRESS_PROXY_ALLOW", "host names"},
		"egress proxies fine":           {[]string{"POSTHORN_EGRESS_PROXY_ALLOW=10.0.0.9:3128"}, "", ""},
		"egress nat64":                  {[]string{"POSTHORN_EGRESS_NAT64=fd00:64::/95"}, "POSTHORN_EGRESS_NAT64", "RFC 6052"},
		"egress nat64 fine":             {[]string{"POSTHORN_EGRESS_NAT64=fd00:64::/96"}, "", ""},
		"egress":                        {[]string{"POSTHORN_EGRESS_ALLOW=127.0.0.1:9000, 10.0.0.0/8"}, "", ""},
		"mail of another kind":          {[]string{"POSTHORN_MAIL=sendmail", "POSTHORN_MAIL_FROM=a@example.com"}, "POSTHORN_MAIL", "console"},
		"resend without key":            {[]string{"POSTHORN_MAIL=resend", "POSTHORN_MAIL_FROM=a@example.com"}, "RESEND_API_KEY", "Resend shows"},
		"resend without sender":         {[]string{"POSTHORN_MAIL=resend", "RESEND_API_KEY=re_1"}, "POSTHORN_MAIL_FROM", "sender"},
		"resend with bad address":       {[]string{"POSTHORN_MAIL=resend", "RESEND_API_KEY=re_1", "POSTHORN_MAIL_FROM=a@example.com", "POSTHORN_RESEND_URL=api"}, "POSTHORN_RESEND_URL", "https://"},
		"resend":                        {[]string{"POSTHORN_MAIL=resend", "RESEND_API_KEY=re_1", "POSTHORN_MAIL_FROM=Posthorn <a@example.com>"}, "", ""},
		"smtp without server":           {[]string{"POSTHORN_MAIL=smtp", "POSTHORN_MAIL_FROM=a@example.com"}, "POSTHORN_SMTP_URL", "smtp://"},
		"smtp":                          {[]string{"POSTHORN_MAIL=smtp", "POSTHORN_MAIL_FROM=a@example.com", "POSTHORN_SMTP_URL=smtp://mail:587"}, "", ""},
		"sender that is none":           {[]string{"POSTHORN_MAIL_FROM=Posthorn"}, "POSTHORN_MAIL_FROM", "e-mail address"},
		"sign-up":                       {[]string{"POSTHORN_SIGNUP=yes"}, "POSTHORN_SIGNUP", "open"},
		"provider without an issuer":    {[]string{"POSTHORN_OIDC_CLIENT_ID=x"}, "POSTHORN_OIDC_CLIENT_ID", "POSTHORN_OIDC_ISSUER is not"},
		"provider without a client":     {[]string{"POSTHORN_OIDC_ISSUER=https://login.example.com"}, "POSTHORN_OIDC_CLIENT_ID", "is not set"},
		"provider by plain http":        {[]string{"POSTHORN_OIDC_ISSUER=http://login.example.com", "POSTHORN_OIDC_CLIENT_ID=x"}, "POSTHORN_OIDC_ISSUER", "no https URL"},
		"operators without a value":     {[]string{"POSTHORN_OIDC_ISSUER=https://login.example.com", "POSTHORN_OIDC_CLIENT_ID=x", "POSTHORN_OIDC_OPERATORS=groups"}, "POSTHORN_OIDC_OPERATORS", "groups=posthorn-operators"},
		"break glass without address":   {[]string{"POSTHORN_OIDC_ISSUER=https://login.example.com", "POSTHORN_OIDC_CLIENT_ID=x", "POSTHORN_OIDC_BREAK_GLASS=ada"}, "POSTHORN_OIDC_BREAK_GLASS", "no email address"},
		"SSO only, perhaps":             {[]string{"POSTHORN_OIDC_ONLY=maybe"}, "POSTHORN_OIDC_ONLY", "on or off"},
		"operators' provider":           {[]string{"POSTHORN_OIDC_ISSUER=https://login.example.com", "POSTHORN_OIDC_CLIENT_ID=x", "POSTHORN_OIDC_OPERATORS=groups=ops", "POSTHORN_OIDC_ONLY=on", "POSTHORN_OIDC_BREAK_GLASS=ada@example.com"}, "", ""},
		"console with a scheme":         {[]string{"POSTHORN_CONSOLE_HOST=https://ops.example.com"}, "POSTHORN_CONSOLE_HOST", "without https://"},
		"console on the public host":    {[]string{"POSTHORN_BASE_URL=https://a.example.com", "POSTHORN_CONSOLE_HOST=A.example.com"}, "POSTHORN_CONSOLE_HOST", "a name of its own"},
		"svix host with a path":         {[]string{"POSTHORN_SVIX_HOST=svix.example.com/svix"}, "POSTHORN_SVIX_HOST", "without a path"},
		"svix host without its API":     {[]string{"POSTHORN_SVIX_HOST=svix.example.com", "POSTHORN_SVIX_API=off"}, "POSTHORN_SVIX_HOST", "turns off"},
		"svix host of the console":      {[]string{"POSTHORN_SVIX_HOST=a.example.com", "POSTHORN_CONSOLE_HOST=A.example.com"}, "POSTHORN_SVIX_HOST", "a name of its own"},
		"console":                       {[]string{"POSTHORN_BASE_URL=https://a.example.com", "POSTHORN_CONSOLE_HOST=ops.example.com:8443"}, "", ""},
		"published host bits":           {[]string{"POSTHORN_EGRESS_ADDRESSES=203.0.113.7/28"}, "POSTHORN_EGRESS_ADDRESSES", "203.0.113.0/28"},
		"published":                     {[]string{"POSTHORN_EGRESS_ADDRESSES=203.0.113.7, 2001:db8::/48"}, "", ""},
		"log level":                     {[]string{"POSTHORN_LOG_LEVEL=loud"}, "POSTHORN_LOG_LEVEL", "debug"},
		"log format":                    {[]string{"POSTHORN_LOG_FORMAT=xml"}, "POSTHORN_LOG_FORMAT", "json"},
		"grace without unit":            {[]string{"POSTHORN_SHUTDOWN_GRACE=20"}, "POSTHORN_SHUTDOWN_GRACE", "20s"},
		"delay of an hour":              {[]string{"POSTHORN_SHUTDOWN_DELAY=1h"}, "POSTHORN_SHUTDOWN_DELAY", "0s to 1m"},
		"grace below zero":              {[]string{"POSTHORN_SHUTDOWN_GRACE=-1s"}, "POSTHORN_SHUTDOWN_GRACE", "1s to 1h"},
		"body memory too small":         {[]string{"POSTHORN_BODY_MEMORY=8"}, "POSTHORN_BODY_MEMORY", "from 16"},
		"body memory with a unit":       {[]string{"POSTHORN_BODY_MEMORY=64MiB"}, "POSTHORN_BODY_MEMORY", "whole number"},
		"body memory of one sender":     {[]string{"POSTHORN_BODY_MEMORY_PER_SENDER=0"}, "POSTHORN_BODY_MEMORY_PER_SENDER", "from 16"},
		"worker name":                   {[]string{"POSTHORN_WORKER_NAME=" + strings.Repeat("w", 101)}, "POSTHORN_WORKER_NAME", "short name"},
		"archive without sum":           {[]string{"POSTHORN_POSTGRES_ARCHIVE=https://example.com/pg.txz"}, "POSTHORN_POSTGRES_ARCHIVE", "SHA256"},
		"archive with half a sum":       {[]string{"POSTHORN_POSTGRES_ARCHIVE_SHA256=abc"}, "POSTHORN_POSTGRES_ARCHIVE_SHA256", "64"},
		"large events nowhere":          {[]string{"POSTHORN_MAX_LARGE_PAYLOAD=1000000"}, "POSTHORN_MAX_LARGE_PAYLOAD", "Set POSTHORN_HISTORY_URL"},
		"large events that are small":   {[]string{"POSTHORN_HISTORY_URL=s3://bucket/a", "POSTHORN_MAX_LARGE_PAYLOAD=262144"}, "POSTHORN_MAX_LARGE_PAYLOAD", "from 262145"},
		"large events beyond a request": {[]string{"POSTHORN_HISTORY_URL=s3://bucket/a", "POSTHORN_MAX_LARGE_PAYLOAD=10485761"}, "POSTHORN_MAX_LARGE_PAYLOAD", "to 10485760"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loadConfig(c.environ)
			var all *ConfigError
			switch {
			case c.variable == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case c.variable == "":
			case !errors.As(err, &all) || len(all.Problems) != 1:
				t.Fatalf("got %v, want one problem with %s", err, c.variable)
			case all.Problems[0].Variable != c.variable || !strings.Contains(all.Problems[0].Detail, c.fix):
				t.Errorf("got %+v, want %s and %q", all.Problems[0], c.variable, c.fix)
			}
		})
	}
}

func TestAllWrongSettingsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := loadConfig([]string{"POSTHORN_ADDR=x", "POSTHORN_LOG_LEVEL=x", "POSTHORN_SHUTDOWN_GRACE=x", "POSTHORN_MAIL=x", "POSTHORN_EGRESS_ALLOW=x"})
	for _, name := range []string{"5 settings are wrong", "POSTHORN_ADDR", "POSTHORN_LOG_LEVEL", "POSTHORN_SHUTDOWN_GRACE", "POSTHORN_MAIL ", "POSTHORN_EGRESS_ALLOW"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

func TestSecretsOfTheConfigurationAreNeverPrinted(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry-hunter2"
	_, wrong := loadConfig([]string{
		"POSTHORN_DATABASE_URL=postgres://u:" + canary + "/@h:1x/d", "POSTHORN_MASTER_KEY=" + canary,
		"POSTHORN_MAIL=smtp", "POSTHORN_SMTP_URL=ftp://u:" + canary + "@h", "POSTHORN_MAIL_FROM=a@example.com",
	})
	if wrong == nil || strings.Contains(wrong.Error(), canary) {
		t.Errorf("error quotes a secret: %v", wrong)
	}
	c, err := loadConfig([]string{
		"POSTHORN_DATABASE_URL=postgres://u:" + canary + "@h/d", "POSTHORN_DATABASE_LISTEN_URL=postgres://u:" + canary + "@h/d",
		"POSTHORN_MASTER_KEY=" + testMasterKey, "RESEND_API_KEY=" + canary, "POSTHORN_SMTP_URL=smtp://u:" + canary + "@h",
	})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	newLogger(&log, "json", slog.LevelDebug).Info("configuration", "config", c, "pointer", &c, "url", c.DatabaseURL)
	newLogger(&log, "text", slog.LevelDebug).Info("configuration", "config", c)
	printed := fmt.Sprintf("%v %+v %#v %s %q %x", c, c, c, c.DatabaseURL, c.MasterKey, c.MasterKey) + log.String()
	if strings.Contains(printed, canary) || strings.Contains(printed, testMasterKey) {
		t.Errorf("a secret was printed: %s", printed)
	}
}

func TestSignUpIsOpenOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:1":          "open",
		"127.9.9.9:1":          "open",
		"localhost:1":          "open",
		"[::1]:1":              "open",
		"[::ffff:127.0.0.1]:1": "open",
		":1":                   "invite",
		"0.0.0.0:1":            "invite",
		"[::]:1":               "invite",
		"192.0.2.1:1":          "invite",
		"posthorn:1":           "invite",
	} {
		c, err := loadConfig([]string{"POSTHORN_ADDR=" + addr})
		if err != nil || c.Signup != want {
			t.Errorf("%s: %q, %v, want %q", addr, c.Signup, err, want)
		}
	}
}

func TestMistypedVariablesAreNoticed(t *testing.T) {
	t.Parallel()
	c, err := loadConfig([]string{
		"POSTHORN_ADDRESS=x", "POSTHORN_METRIC_ADDR=x", "POSTHORN_MASTERKEY=x", "POSTHORN_EGRES_ALLOW=x",
		"POSTHORN_SERVICE_HOST=10.0.0.1", "POSTHORN_PORT=tcp://10.0.0.1:80", "POSTHORN_URL=x", "POSTHORN_API_KEY=x", "PATH=/bin",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"POSTHORN_METRIC_ADDR": "POSTHORN_METRICS_ADDR",
		"POSTHORN_MASTERKEY":   "POSTHORN_MASTER_KEY",
		"POSTHORN_EGRES_ALLOW": "POSTHORN_EGRESS_ALLOW",
	}
	if !maps.Equal(c.Suspects, want) {
		t.Errorf("got %v, want %v", slices.Sorted(maps.Keys(c.Suspects)), want)
	}
}
