package egress

import (
	"fmt"
	"strings"
	"testing"

	"posthorn/domain/fault"
)

func TestHeadersThatTenantsMayNotSet(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Connection", "TE", "Content-Length", "Content-Type", "User-Agent", "Accept-Encoding", "Expect", "X-Acme-Signature", "Acme-Signature", "Signature",
		"X-Webhook-Id", "X-Delivery-Id", "Metadata-Flavor", "X-Google-Metadata-Request", "X-aws-ec2-metadata-token-ttl-seconds", "Via", "Trailers", "x-azure-foo", "X-Ms-Version", "X-Upstream-Https-Proxy", "X A", "X-Ä", "X\r\nY",
	} {
		if checkHeader(name, "v") == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	for _, name := range []string{"Authorization", "X-Acme-Signature-Version", "Cookie", "X-Hub", "webhook", "X_Under", "Idempotency-Key", "traceparent"} {
		if err := checkHeader(name, "v"); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, value := range []string{"", "a b", "a\tb", strings.Repeat("x", 4096)} {
		if err := checkHeader("X-A", value); err != nil {
			t.Errorf("value %.10q: %v", value, err)
		}
	}
	for _, value := range []string{" a", "a\t", "a\nb", "a\x00b", "ä", "\x80", strings.Repeat("x", 4097)} {
		if checkHeader("X-A", value) == nil {
			t.Errorf("value %.10q was accepted", value)
		}
	}
}

func TestHeaderRefusalsNameEachHeaderAndNeverAValue(t *testing.T) {
	t.Parallel()
	secret := "hunter2\x00"
	err := CheckHeaders(map[string]string{"X-B": secret, "Host": secret, "X-Ok": "1", "x-ok": "2", "X\nY": secret, "acme-event": "3"}, "Acme-Event")
	f := fault.As(err)
	if f == nil {
		t.Fatalf("got %v", err)
	}
	var names []string
	for _, field := range f.Fields {
		names = append(names, field.Name)
		if strings.Contains(field.Detail, "hunter2") || field.Code != "custom_header_refused" || field.Detail == "" {
			t.Errorf("%+v", field)
		}
	}
	want := `custom_headers.Host custom_headers."X\nY" custom_headers.X-B custom_headers.acme-event custom_headers.x-ok`
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if err := CheckHeaders(nil); err != nil {
		t.Errorf("no headers: %v", err)
	}
}

func TestAtMostTwentyHeaders(t *testing.T) {
	t.Parallel()
	h := map[string]string{}
	for i := range 20 {
		h[fmt.Sprintf("X-%d", i)] = "v"
	}
	if err := CheckHeaders(h); err != nil {
		t.Errorf("20: %v", err)
	}
	h["X-20"] = "v"
	if f := fault.As(CheckHeaders(h)); f == nil || f.Fields[0].Name != "custom_headers" {
		t.Errorf("21: %v", f)
	}
}

func TestSensitiveHeadersAreWriteOnly(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Authorization":     true,
		"X-Api-Key":         true,
		"apikey":            true,
		"X-ACCESS-TOKEN":    true,
		"X-Client-Secret-2": true,
		"Cookie":            true,
		"X-Auth":            true,
		"X-Session-Id":      true,
		"X_API_KEY":         true,
		"X-Signing-Key":     true,
		"X-Tenant":          false,
		"X-Author":          false,
		"X-Environment":     false,
		"Accept":            false,
	} {
		if got := SensitiveHeader(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestMaskKeepsNoValueOfAQuery(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://example.com/hook":                           "https://example.com/hook",
		"https://example.com/a%2Fb?token=s3cret&x=":          "https://example.com/a%2Fb?token=***&x=***",
		"https://u:s3cret@example.com:8443/?a=s3cret#s3cret": "https://example.com:8443/?a=***",
		"https://example.com/?s3cret":                        "https://example.com/?***",
		"https://example.com/?a;s3cret=1&&b=s3cret;c=s3":     "https://example.com/?a=***&&b=***",
		"https://example.com/%zz?s3cret":                     "***",
		"mailto:s3cret@example.com":                          "***",
		"":                                                   "***",
	} {
		if got := Mask(raw); got != want || strings.Contains(got, "s3") {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func checkHeader(name, value string) error { return CheckHeaders(map[string]string{name: value}) }
