package notice

import "time"

// What notices of a kind hold beside it: the JSON that the API shows and that the mails are made of. Times are UTC, ids
// are as people see them, URLs have their query values masked, and nothing here is a secret.

// EndpointDetails belong to EndpointWarning, EndpointDisabled and EndpointRecovered.
type EndpointDetails struct {
	Endpoint            string     `json:"endpoint"`
	URL                 string     `json:"url"`
	Description         string     `json:"description,omitempty"`
	Reason              string     `json:"reason,omitempty"`        // health.Reason: why it is or will be disabled, or was
	Stage               string     `json:"stage,omitempty"`         // health.Stage of a warning
	DisableAt           *time.Time `json:"disable_at,omitempty"`    // of a dated warning
	FailuresLeft        int        `json:"failures_left,omitempty"` // of a warning that still lacks failures
	ConsecutiveFailures int        `json:"consecutive_failures,omitempty"`
	AuthStreak          int        `json:"auth_streak,omitempty"`  // of them returned 401, 403 or 404
	LastStatus          int        `json:"last_status,omitempty"`  // HTTP; 0: no response
	LastFailure         string     `json:"last_failure,omitempty"` // delivery.Failure if there was no response
	LastExcerpt         string     `json:"last_excerpt,omitempty"` // the beginning of the last response's body, as text
	FirstFailureAt      *time.Time `json:"first_failure_at,omitempty"`
	LastFailureAt       *time.Time `json:"last_failure_at,omitempty"`
	LastSuccessAt       *time.Time `json:"last_success_at,omitempty"`
	Held                int64      `json:"held,omitempty"`      // deliveries that wait for it
	HeldMore            bool       `json:"held_more,omitempty"` // at least so many: they were not all counted
	Drops               bool       `json:"drops,omitempty"`     // events make no delivery to it while it is not active

	FailedPermanently int64  `json:"failed_permanently,omitempty"`  // dead letters since the first failure: they are not sent again by themselves
	FailedMore        bool   `json:"failed_more,omitempty"`         // at least so many
	RetryClientErrors bool   `json:"retry_client_errors,omitempty"` // 4xx responses are retried; else such a delivery fails at its first
	Problem           string `json:"problem,omitempty"`             // health.Problem that most failed attempts of the last 24 hours had
	Response          string `json:"response,omitempty"`            // the most frequent response or failure of those: "401", "timeout"
	ResponseCount     int64  `json:"response_count,omitempty"`
	Action            string `json:"action,omitempty"`   // what to do about that response, by the endpoint's kind
	Attempts          int64  `json:"attempts,omitempty"` // of the last 24 hours
}

// HeldDetails belong to HeldExpiring.
type HeldDetails struct {
	Endpoint    string    `json:"endpoint"`
	URL         string    `json:"url"`
	Description string    `json:"description,omitempty"`
	Status      string    `json:"status,omitempty"` // why they are held: unverified, paused or disabled
	Held        int64     `json:"held"`
	HeldMore    bool      `json:"held_more,omitempty"`
	ExpiresAt   time.Time `json:"expires_at"` // when the oldest of them ends as failed
}

// FeedDetails belong to FeedUnread.
type FeedDetails struct {
	Endpoint    string     `json:"endpoint"`
	URL         string     `json:"url"`
	Description string     `json:"description,omitempty"`
	Reason      string     `json:"reason,omitempty"`      // late: a consumer; unread: nobody reads it
	Consumer    string     `json:"consumer,omitempty"`    // that is late
	Events      int        `json:"events,omitempty"`      // that it has not acknowledged, before the feed's filter
	EventsMore  bool       `json:"events_more,omitempty"` // at least so many
	Since       *time.Time `json:"since,omitempty"`       // of the oldest of them, or when the feed was last read
	DisableAt   *time.Time `json:"disable_at,omitempty"`  // of a feed that nobody reads
	Disabled    bool       `json:"disabled,omitempty"`    // it was
}

// SourceDetails belong to SourceFailing.
type SourceDetails struct {
	Source  string    `json:"source"`
	Name    string    `json:"name"`
	URL     string    `json:"url"`
	Reason  string    `json:"reason"`           // why it can't be read, or that it falls behind
	Behind  bool      `json:"behind,omitempty"` // it is read
	Since   time.Time `json:"since"`
	Waiting int64     `json:"waiting,omitempty"` // messages in the broker, where that is known
}

// SecretDetails belong to SecretRotated.
type SecretDetails struct {
	Endpoint    string     `json:"endpoint"`
	URL         string     `json:"url"`
	Description string     `json:"description,omitempty"`
	Secret      string     `json:"secret"`              // the id of the new one
	Hint        string     `json:"hint,omitempty"`      // its last characters
	OldUntil    *time.Time `json:"old_until,omitempty"` // when the older ones stop signing; nil: they have
	By          string     `json:"by,omitempty"`        // who did it, as the audit log says
}

// CertificateDetails belong to CertificateExpiring.
type CertificateDetails struct {
	Endpoint    string    `json:"endpoint"`
	URL         string    `json:"url"`
	Description string    `json:"description,omitempty"`
	ExpiresAt   time.Time `json:"expires_at"`
	Expired     bool      `json:"expired,omitempty"` // it has
}

// KeyDetails belong to KeyCreated.
type KeyDetails struct {
	Key       string     `json:"key"` // its id
	Name      string     `json:"name"`
	Prefix    string     `json:"prefix"` // the part that is shown
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	By        string     `json:"by,omitempty"`
}

// FailedDetails belong to DeliveryFailed.
type FailedDetails struct {
	Endpoint    string    `json:"endpoint"`
	URL         string    `json:"url"`
	Delivery    string    `json:"delivery"`
	Event       string    `json:"event"`
	EventType   string    `json:"event_type"`
	Reason      string    `json:"reason"` // delivery.Reason
	Attempts    int       `json:"attempts"`
	LastStatus  int       `json:"last_status,omitempty"`
	LastFailure string    `json:"last_failure,omitempty"`
	FailedAt    time.Time `json:"failed_at"`
}

// QuotaDetails belong to QuotaWarning and QuotaReached.
type QuotaDetails struct {
	Quota    string     `json:"quota"` // what is counted, in words: "events per month"
	Used     int64      `json:"used"`
	Limit    int64      `json:"limit"`
	ResetsAt *time.Time `json:"resets_at,omitempty"`
}

// DigestDetails belong to Digest: the tenant's health when it was made.
type DigestDetails struct {
	Day              string           `json:"day"` // UTC, 2006-01-02
	Severity         string           `json:"severity"`
	Findings         []DigestFinding  `json:"findings,omitempty"` // the worst first
	Action           string           `json:"action,omitempty"`   // what to do first
	ActionEndpoint   string           `json:"action_endpoint,omitempty"`
	Alerts           []DigestAlert    `json:"alerts,omitempty"` // an alert for each endpoint that needs attention, the worst first
	MoreAlerts       int              `json:"more_alerts,omitempty"`
	Recovered        []DigestRecovery `json:"recovered,omitempty"`    // endpoints whose failures are over
	DeadLetters      int64            `json:"dead_letters,omitempty"` // now
	ActiveEndpoints  int              `json:"active_endpoints"`
	SuccessDay       string           `json:"success_day"` // in percent; a dash where there were no attempts
	SuccessHour      string           `json:"success_hour"`
	Attempts         int64            `json:"attempts"`
	Retries          int64            `json:"retries"`
	FailedDeliveries int64            `json:"failed_deliveries"`
	P50Milliseconds  int64            `json:"p50_ms"`
	P95Milliseconds  int64            `json:"p95_ms"`
	Endpoints        []DigestEndpoint `json:"endpoints,omitempty"` // that failed most
}

// DigestFinding is one thing that is not well.
type DigestFinding struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Detail   string `json:"detail"`
	Endpoint string `json:"endpoint,omitempty"` // the one that is meant, or the worst of several
}

// DigestAlert is one endpoint that needs attention.
type DigestAlert struct {
	Endpoint string `json:"endpoint"`
	Name     string `json:"name"` // what people call it
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Detail   string `json:"detail"`
	Action   string `json:"action"`
}

// DigestRecovery is one endpoint whose failures are over.
type DigestRecovery struct {
	Endpoint string    `json:"endpoint"`
	Name     string    `json:"name"`
	Detail   string    `json:"detail"`
	At       time.Time `json:"at"` // since when it is well
}

// DigestEndpoint is one endpoint among those that failed most.
type DigestEndpoint struct {
	Endpoint string `json:"endpoint"`
	Name     string `json:"name,omitempty"`
	URL      string `json:"url"`
	Status   string `json:"status"` // condition.State
	Failed   int64  `json:"failed"` // attempts of the last 24 hours
	Attempts int64  `json:"attempts"`
}

// HaltDetails belong to TenantSuspended, TenantResumed, DispatchPaused and DispatchResumed.
type HaltDetails struct {
	Reason string    `json:"reason,omitempty"` // as the operator gave it
	At     time.Time `json:"at"`
}
