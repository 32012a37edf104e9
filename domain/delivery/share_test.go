package delivery

import "testing"

func TestASharedRequestShowsNoSignature(t *testing.T) {
	t.Parallel()
	for _, h := range [][3]string{
		{"Webhook-Signature", "v1,abc", Masked},
		{"X-Hub-Signature-256", "sha256=abc", Masked},
		{"X-Shop-Hmac-Sha256", "abc", Masked},
		{"Authorization", "Bearer x", Masked},
		{"X-Api-Token", "x", Masked},
		{"X-Custom", "t=1,v1=sig", Masked},
		{"Webhook-Id", "evt_1", "evt_1"},
		{"Content-Type", "application/json", "application/json"},
	} {
		if got := ShareHeader(h[0], h[1], "v1=sig"); got != h[2] {
			t.Errorf("%s is shown as %s", h[0], got)
		}
	}
	for seconds, bad := range map[int]bool{0: true, ShareLeast - 1: true, ShareLeast: false, ShareMost: false, ShareMost + 1: true} {
		if got := len(ShareFaults(seconds)) > 0; got != bad {
			t.Errorf("%d seconds: wrong %v", seconds, got)
		}
	}
}
