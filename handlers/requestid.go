package handlers

import (
	"github.com/gin-gonic/gin"

	"posthorn/db"
	"posthorn/domain/id"
)

const (
	requestIDHeader = "X-Request-Id"
	requestIDKey    = "posthorn.request_id"
	maxRequestID    = 128
)

// requestID is the id of the current request.
func requestID(c *gin.Context) string {
	if v, ok := c.Get(requestIDKey); ok {
		return v.(string)
	}
	return ""
}

// nameRequest uses the caller's request id if it is valid in headers and logs, or creates one.
func nameRequest(c *gin.Context) {
	given := c.Request.Header.Get(requestIDHeader)
	if !saneRequestID(given) {
		given = id.Request.Format(db.NewID())
	}
	c.Set(requestIDKey, given)
	c.Writer.Header().Set(requestIDHeader, given)
}

func saneRequestID(s string) bool {
	if s == "" || len(s) > maxRequestID {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
