package endpoint

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/fault"
)

// The bounds and the default of the names of objects.
const (
	maxS3Key = 512 // characters of a template
	S3Key    = "{endpoint}/{date}/{hour}/{id}"
)

// S3Connection says to which bucket of Amazon S3, or of a server that is compatible with it, an endpoint writes.
type S3Connection struct {
	Server      string `json:"endpoint_url"` // of a compatible server; empty: Amazon's
	Region      string `json:"region"`
	Bucket      string `json:"bucket"`
	PathStyle   bool   `json:"path_style"`   // the bucket is in the path and not in the host
	Key         string `json:"key_template"` // of objects, without the extension
	Gzip        bool   `json:"gzip"`
	AccessKeyID string `json:"access_key_id"`
	SecretKey   string `json:"secret_access_key"`
}

// Format keeps the secret key out of logs whatever the verb.
func (b S3Connection) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(b.Place() + " redacted")) }

// Place is where the connection leads.
func (b *S3Connection) Place() string {
	return b.Server + " " + b.Region + " " + b.Address() + " " + b.Key
}

// Address is the connection as people see it, as a URL: the bucket, and what the names of all objects begin with.
func (b *S3Connection) Address() string { return "s3://" + b.Bucket + "/" + b.prefix() }

// Clone is a copy.
func (b *S3Connection) Clone() Connection {
	c := *b
	return &c
}

// URL is where an object is. = is escaped, as the signature needs it.
func (b *S3Connection) URL(key string) *url.URL {
	server := b.Server
	if server == "" {
		server = "https://s3." + b.Region + ".amazonaws.com"
		if strings.HasPrefix(b.Region, "cn-") {
			server += ".cn"
		}
	}
	u, err := url.Parse(server)
	if err != nil {
		return &url.URL{}
	}
	u.Path = "/" + key
	// The certificate of *.s3.amazonaws.com is not one of a name with further dots.
	if b.PathStyle || strings.Contains(b.Bucket, ".") {
		u.Path = "/" + b.Bucket + u.Path
	} else {
		u.Host = b.Bucket + "." + u.Host
	}
	u.RawPath = strings.ReplaceAll(u.Path, "=", "%3D")
	return u
}

// prefix is the folder in which all objects are: the template up to its first placeholder.
func (b *S3Connection) prefix() string {
	fixed, _, _ := strings.Cut(b.Key, "{")
	return fixed[:strings.LastIndexByte(fixed, '/')+1]
}

// Object is the name of an object of an endpoint. at is the time of the oldest delivery in it, and digest that of all.
func (b *S3Connection) Object(endpoint string, at time.Time, digest string) string {
	at = at.UTC()
	key := strings.NewReplacer(
		"{endpoint}", endpoint,
		"{date}", at.Format("2006-01-02"),
		"{year}", at.Format("2006"),
		"{month}", at.Format("01"),
		"{day}", at.Format("02"),
		"{hour}", at.Format("15"),
		"{id}", at.Format("20060102T150405.000Z")+"-"+digest,
	).Replace(b.Key) + ".ndjson"
	if b.Gzip {
		key += ".gz"
	}
	return key
}

// Probe is the name of the object that a verification writes. Programs that read tables skip names with an underscore
// first.
func (b *S3Connection) Probe(endpoint string) string {
	key := b.prefix() + "_posthorn_" + endpoint + ".ndjson"
	if b.Gzip {
		key += ".gz"
	}
	return key
}

// Keep keeps the stored secret key where none is given, as long as it signs for the same bucket and access key.
func (b *S3Connection) Keep(given *S3Connection) error {
	if given.SecretKey != "" && given.SecretKey != Marker {
		return nil
	}
	if given.SecretKey = ""; b == nil {
		return nil // Check asks for one
	}
	if given.Server != b.Server || given.Region != b.Region || given.Bucket != b.Bucket || given.AccessKeyID != b.AccessKeyID {
		return fault.InvalidField("s3.secret_access_key", "s3_secret_needed",
			"Send the secret access key again. The stored one is kept only if the endpoint URL, region, bucket, and access key id don't change.")
	}
	given.SecretKey = b.SecretKey
	return nil
}

func readS3(text []byte) (Connection, error) {
	var b S3Connection
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, err
	}
	return &b, nil
}

var (
	s3Bucket = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	s3Places = regexp.MustCompile(`\{(endpoint|date|year|month|day|hour|id)\}`)
	s3Path   = regexp.MustCompile(`^[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*$`)
	allDots  = regexp.MustCompile(`(^|/)\.+(/|$)`)
)

const s3KeyRule = "A key template has up to %d letters, digits, and the characters / _ - . =, with {id}, and if you like {endpoint}, {date}, {year}, {month}, {day}, and {hour}. " +
	"It doesn't begin or end with a slash."

// s3 checks a bucket's connection. An object that the bucket has is proof enough that the endpoint wants it.
func (c *collector) s3(s *Settings, policy egress.Policy) {
	s.Verification = "simple"
	b, ok := s.Connection.(*S3Connection)
	if !ok || b == nil {
		c.refuse("s3", "s3_missing", "An s3 endpoint needs s3.bucket, s3.region, s3.access_key_id, and s3.secret_access_key.")
		return
	}
	if b.Key == "" {
		b.Key = S3Key
	}
	named := s3Bucket.MatchString(b.Bucket) && !strings.Contains(b.Bucket, "..")
	if !named {
		c.refuse("s3.bucket", "s3_bucket_malformed", "A bucket's name has 3 to 63 lower-case letters, digits, dots, and hyphens.")
	}
	inRegion := awsRegion.MatchString(b.Region) && len(b.Region) <= 32
	if !inRegion {
		c.refuse("s3.region", "s3_region_malformed", "The region is a name such as eu-west-1. A compatible server without regions usually takes us-east-1.")
	}
	c.s3Server(b, named && inRegion, policy)
	plain := s3Places.ReplaceAllString(b.Key, "0")
	if !strings.Contains(b.Key, "{id}") || len(b.Key) > maxS3Key || !s3Path.MatchString(plain) || allDots.MatchString(plain) {
		c.refuse("s3.key_template", "s3_key_malformed", fmt.Sprintf(s3KeyRule, maxS3Key))
	}
	if !awsKeyID.MatchString(b.AccessKeyID) {
		c.refuse("s3.access_key_id", "s3_credentials_malformed", "An access key id has 1 to 128 printable ASCII characters without spaces.")
	}
	if !awsSecret.MatchString(b.SecretKey) {
		c.refuse("s3.secret_access_key", "s3_credentials_malformed", "A secret access key has 1 to 256 printable ASCII characters without spaces.")
	}
	s.URL = b.Address()
}

// s3Server checks where requests are sent to, and that it can be reached if the rest of the connection is right.
func (c *collector) s3Server(b *S3Connection, known bool, policy egress.Policy) {
	if b.Server != "" {
		u, err := url.Parse(b.Server)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
			c.refuse("s3.endpoint_url", "s3_endpoint_malformed", "Write the endpoint URL as https://s3.example.com, without a path. Leave it out for Amazon S3.")
			return
		}
		b.Server = strings.ToLower(u.Scheme + "://" + u.Host)
	}
	if !known {
		return
	}
	if _, err := policy.CheckURL(b.URL("").String()); err != nil {
		c.refuse("s3.endpoint_url", "endpoint_url_refused", err.Error())
	}
}

// setS3 changes an endpoint's connection. A stored secret key never signs for another bucket.
func setS3(s *Settings, raw json.RawMessage) error {
	before, _ := s.Connection.(*S3Connection)
	after := &S3Connection{}
	if before != nil {
		*after = *before
		after.SecretKey = ""
	}
	given := struct {
		Server      json.RawMessage `json:"endpoint_url"`
		Region      *string         `json:"region"`
		Bucket      *string         `json:"bucket"`
		PathStyle   *bool           `json:"path_style"`
		Key         *string         `json:"key_template"`
		Gzip        *bool           `json:"gzip"`
		AccessKeyID *string         `json:"access_key_id"`
		SecretKey   *string         `json:"secret_access_key"`
	}{nil, &after.Region, &after.Bucket, nil, &after.Key, &after.Gzip, &after.AccessKeyID, &after.SecretKey}
	if err := s.readConnection(S3, "s3_unwanted", raw, &given); err != nil {
		return err
	}
	if len(given.Server) > 0 {
		after.Server = unquote(given.Server) // null: Amazon's
	}
	for _, text := range []*string{&after.Server, &after.Region, &after.Bucket, &after.Key, &after.AccessKeyID, &after.SecretKey} {
		*text = strings.TrimSpace(*text)
	}
	after.Server = strings.TrimRight(after.Server, "/")
	switch {
	case given.PathStyle != nil:
		after.PathStyle = *given.PathStyle
	case before == nil:
		after.PathStyle = after.Server != ""
	}
	s.Connection = after
	return before.Keep(after)
}

// showS3 is the connection without the secret key.
func showS3(s Settings) any {
	b, ok := s.Connection.(*S3Connection)
	if !ok {
		return nil
	}
	out := map[string]any{
		"endpoint_url":  nil,
		"region":        b.Region,
		"bucket":        b.Bucket,
		"path_style":    b.PathStyle,
		"key_template":  b.Key,
		"gzip":          b.Gzip,
		"access_key_id": b.AccessKeyID,
	}
	if b.Server != "" {
		out["endpoint_url"] = b.Server
	}
	return out
}
