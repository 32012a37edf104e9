package delivery

import (
	"strconv"
	"strings"
	"time"
)

// IdleLimit is how long a connection can be kept unused after a response: most, or a second less than the receiver says
// in Keep-Alive: timeout=N. A request that is on its way when the receiver closes would be lost. 0: it is closed now.
func IdleLimit(keepAlive string, most time.Duration) time.Duration {
	if keepAlive == "" {
		return most
	}
	for _, parameter := range strings.Split(keepAlive, ",") {
		name, value, _ := strings.Cut(parameter, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "timeout") {
			continue
		}
		seconds, err := strconv.ParseUint(strings.Trim(value, " \t\""), 10, 16) // a larger number is no limit
		if err == nil {
			most = min(most, max(time.Duration(seconds)*time.Second-time.Second, 0))
		}
	}
	return most
}
