package delivery

import "maps"

// s3Statuses maps the errors of S3 to HTTP statuses, so that one table decides for all kinds of endpoints. Errors that
// are not listed are problems of the service and count as 503.
var s3Statuses = map[string]int{
	"AuthorizationHeaderMalformed":       401, // another region, or an access key of another form
	"ExpiredToken":                       401,
	"InvalidAccessKeyId":                 401,
	"InvalidSecurity":                    401,
	"InvalidToken":                       401,
	"XAdminUserNotFound":                 401, // of versitygw, for an access key that it does not know
	"SignatureDoesNotMatch":              401,
	"AccessDenied":                       403,
	"AccountProblem":                     403,
	"AllAccessDisabled":                  403,
	"KMS.DisabledException":              403,
	"KMS.KMSInvalidStateException":       403,
	"KMS.NotFoundException":              403,
	"NotSignedUp":                        403,
	"InvalidBucketName":                  404,
	"NoSuchBucket":                       404,
	"PermanentRedirect":                  404, // the bucket is in another region
	"TemporaryRedirect":                  404,
	"IllegalLocationConstraintException": 404,
	"EntityTooLarge":                     413,
	"BadDigest":                          422,
	"InvalidArgument":                    422,
	"InvalidDigest":                      422,
	"InvalidRequest":                     422,
	"KeyTooLongError":                    422,
	"MetadataTooLarge":                   422,
	"MethodNotAllowed":                   422,
	"XAmzContentSHA256Mismatch":          422,
	"RequestLimitExceeded":               429,
	"SlowDown":                           429,
	"Throttling":                         429,
	"ThrottlingException":                429,
	"TooManyRequests":                    429,
	"KMS.ThrottlingException":            429,
	"RequestExpired":                     500, // a clock is wrong, which the endpoint's owner can't fix
	"RequestTimeTooSkewed":               500,
}

// S3Statuses are the errors of S3 that don't count as 503, with their HTTP statuses.
func S3Statuses() map[string]int { return maps.Clone(s3Statuses) }

// OfS3 maps an error of S3 to a result, by its code; empty is an object that the bucket has.
func OfS3(code string) Result {
	status, known := s3Statuses[code]
	switch {
	case code == "":
		status = 200
	case !known:
		status = 503
	}
	return Result{Status: status, Again: status == 401 || status == 403 || status == 404}
}
