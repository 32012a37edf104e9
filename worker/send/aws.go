package send

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/signature"
)

// awsClient sends signed requests to services of AWS, and to servers that are compatible with them.
type awsClient struct {
	client *http.Transport
}

const awsIdle = 30 * time.Second

func newAWSClient(g *guard) awsClient {
	return awsClient{&http.Transport{
		Proxy:                  nil,
		DialContext:            g.dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    tlsTimeout,
		MaxResponseHeaderBytes: maxAnswerHead,
		DisableCompression:     true,
		MaxIdleConns:           200,
		MaxIdleConnsPerHost:    20,
		IdleConnTimeout:        awsIdle,
	}}
}

func (c awsClient) close() { c.client.CloseIdleConnections() }

// awsService is what a request is signed for, and by whom.
type awsService struct{ name, region, keyID, secretKey string }

// errUnusable says that a stored connection can't be used.
var errUnusable = errors.New("the connection's settings could not be used")

// do signs a request with a body, sends it once, and reads at most so many bytes of the response.
func (c awsClient) do(ctx context.Context, r *http.Request, body []byte, of awsService, most int64) (status int, header http.Header, text []byte, err error) {
	r.Header.Set("User-Agent", signature.UserAgent)
	sum := sha256.Sum256(body)
	// A signer of its own: signers keep the keys that they derive by the access key's id alone.
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = of.name == "s3" })
	credentials := aws.Credentials{AccessKeyID: of.keyID, SecretAccessKey: of.secretKey}
	if err := signer.SignHTTP(ctx, credentials, r, hex.EncodeToString(sum[:]), of.name, of.region, time.Now()); err != nil {
		return 0, nil, nil, errUnusable
	}
	response, err := c.client.RoundTrip(r)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(io.LimitReader(response.Body, most))
	return response.StatusCode, response.Header, text, err
}

// timed adds the durations to what a service said. ctx is without the endpoint's timeout.
func (s said) timed(ctx context.Context, ph *phases) said {
	if ctx.Err() != nil && s.result.Status != 200 {
		s = interrupted()
	}
	a := &queue.Attempt{}
	ph.fill(a)
	s.took, s.spent = time.Since(ph.began), spent{a.DNS, a.Connect, a.TLS}
	return s
}

// awsFailed describes a request without a response.
func awsFailed(ctx context.Context, err error) said {
	failure, text := delivery.FailReset, clientText(err)
	var dial *dialError
	switch {
	case errors.As(err, &dial):
		failure = dial.failure
	case ctx.Err() != nil:
		failure, text = delivery.FailTimeout, "no response in time"
	case isTLS(err):
		failure = delivery.FailTLS
	case !isClosed(err):
		failure = delivery.FailProtocol
	}
	return said{result: delivery.Result{Failure: failure}, text: text}
}
