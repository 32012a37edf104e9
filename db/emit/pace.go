package emit

import "time"

const (
	// commitEvery is the longest time from the begin of one commit to the begin of the next while requests wait. A
	// transaction has costs of its own, whatever it carries: under load fewer and fuller ones leave more of the machine
	// to deliveries.
	commitEvery = 5 * time.Millisecond
	// busy is how many requests must be under way before one of them waits for others.
	busy = 8
	// look is how often what waits is counted.
	look = time.Millisecond
)

// pace holds a commit back while that pays: until as many requests wait as were under way lately, and never for longer
// than commitEvery after the last one began. Callers that come one after the other never wait for each other.
type pace struct {
	began time.Time
	last  int // requests in the last commit
}

// wait returns when the next commit should begin. waiting counts the requests that would be in it.
func (p *pace) wait(waiting func() int) {
	underWay := p.last + waiting()
	if underWay < busy {
		return
	}
	for until := p.began.Add(commitEvery); waiting() < underWay; {
		rest := time.Until(until)
		if rest <= 0 {
			return
		}
		time.Sleep(min(rest, look))
	}
}

// begin notes a commit of n requests.
func (p *pace) begin(n int) { p.began, p.last = time.Now(), n }
