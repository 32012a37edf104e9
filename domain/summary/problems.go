package summary

import (
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
)

// classOf is the roll-ups' class of a failed result.
func classOf(r delivery.Result) int {
	switch r.Failure {
	case delivery.FailNone:
	case delivery.FailTimeout:
		return health.ClassTimeout
	case delivery.FailBlocked:
		return health.ClassBlocked
	default:
		return health.ClassNetwork
	}
	switch s := r.Status; {
	case s >= 300 && s < 400:
		return health.ClassRedirect
	case s >= 400 && s < 500:
		return health.ClassClient
	}
	return health.ClassServer
}

// problems counts failed attempts by problem. The results say what exactly failed; attempts whose result is not known
// count by their class, so that all that failed is counted once.
func problems(errors []health.ErrorCount, a health.Attempts) map[health.Problem]int64 {
	counts, rest := map[health.Problem]int64{}, a
	for _, e := range errors {
		if p := health.ProblemOf(e.Result()); p != "" {
			counts[p] += max(e.Count, 0)
			rest[classOf(e.Result())] -= max(e.Count, 0)
		}
	}
	for class, p := range map[int]health.Problem{
		health.ClassRedirect: health.ProblemRedirect,
		health.ClassClient:   health.ProblemRejected,
		health.ClassServer:   health.ProblemServer,
		health.ClassNetwork:  health.ProblemNetwork,
		health.ClassTimeout:  health.ProblemTimeout,
		health.ClassBlocked:  health.ProblemBlocked,
	} {
		counts[p] += max(rest[class], 0)
	}
	return counts
}

// dominant is the most frequent problem and its count.
func dominant(errors []health.ErrorCount, a health.Attempts) (most health.Problem, n int64) {
	counts := problems(errors, a)
	for _, p := range health.Problems() {
		if counts[p] > n {
			most, n = p, counts[p]
		}
	}
	return most, n
}

// dominantEndpoint is the endpoint that has most of a problem.
func dominantEndpoint(in []Endpoint, p health.Problem) (ID id.UUID) {
	var most int64
	for _, e := range in {
		if n := problems(e.Errors, e.Day)[p]; n > most {
			ID, most = e.ID, n
		}
	}
	return ID
}

// frequent is the most frequent response among those that show a problem.
func frequent(errors []health.ErrorCount, p health.Problem) (most Response) {
	for _, e := range errors {
		if r := e.Result(); health.ProblemOf(r) == p &&
			(e.Count > most.Count || e.Count == most.Count && e.Status < most.Status) {
			most = Response{Result: r, Count: e.Count}
		}
	}
	return most
}
