package endpoint

import "time"

// CertificateStages are when the end of a client certificate is warned of, by the time that is left, the last first.
// Zero is its end.
func CertificateStages() []time.Duration {
	const day = 24 * time.Hour
	return []time.Duration{0, day, 7 * day, 30 * day}
}

// CertificateStage is the stage that a certificate is in; false: none yet.
func CertificateStage(ends, now time.Time) (stage time.Duration, warn bool) {
	for _, stage := range CertificateStages() {
		if left := ends.Sub(now); left <= stage {
			return stage, true
		}
	}
	return 0, false
}
