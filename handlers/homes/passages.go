package homes

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"io"
	"net/http"
	"sync"
	"time"

	"posthorn/domain/home"
)

// passages remembers the passages that this process has read, so that each is used once. It forgets them when their
// signatures have expired. Two halves take turns, each for the life of a passage.
type passages struct {
	now func() time.Time

	mu          sync.Mutex
	recent, old map[uint64]struct{}
	since       time.Time
}

// newNonce is the number of a new passage.
func newNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: the program would have crashed
	return max(binary.LittleEndian.Uint64(b[:]), 1)
}

// maxPassages bounds each half. What is beyond it is forgotten: at 4,000 requests a second between two homes.
const maxPassages = 500_000

func newPassages(now func() time.Time) *passages {
	return &passages{now: now, recent: map[uint64]struct{}{}, since: now()}
}

// first reports whether a passage has not been used. A passage without a number, of an earlier release, always passes.
func (u *passages) first(p home.Passage) bool {
	if p.Nonce == 0 {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := u.now(); now.Sub(u.since) >= home.PassageLife || len(u.recent) >= maxPassages {
		u.old, u.recent, u.since = u.recent, map[uint64]struct{}{}, now
	}
	_, recent := u.recent[p.Nonce]
	_, old := u.old[p.Nonce]
	u.recent[p.Nonce] = struct{}{}
	return !recent && !old
}

// digest is the SHA-256 of a body that has arrived, for its passage; empty: there is none.
func digest(r *http.Request) (string, error) {
	body, ok := r.Body.(io.ReadSeeker)
	if !ok || r.ContentLength == 0 {
		return "", nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, body); err != nil {
		return "", err
	}
	_, err := body.Seek(0, io.SeekStart)
	return encodeDigest(sum.Sum(nil)), err
}

func encodeDigest(sum []byte) string { return base64.RawURLEncoding.EncodeToString(sum) }

// matches reports whether a passage speaks of a request with a body, as this one is, or without. An earlier release
// says neither.
func matches(p home.Passage, r *http.Request) bool {
	return p.Nonce == 0 || (p.Body == "") == (r.ContentLength == 0)
}

// signedBody is a body whose digest a home has signed. Another body ends with errForged.
type signedBody struct {
	io.ReadCloser
	digest hash.Hash
	want   string
}

func (b *signedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.digest.Write(p[:n])
	if err == io.EOF {
		got := encodeDigest(b.digest.Sum(nil))
		if subtle.ConstantTimeCompare([]byte(got), []byte(b.want)) != 1 {
			return 0, errForged
		}
	}
	return n, err
}
