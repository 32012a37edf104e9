package emit

import "time"

const (
	// commitEvery is the longest time from the start of one commit to the start of the next while requests wait. Every
	// transaction has a fixed cost: under load, fewer and fuller transactions leave more of the machine to deliveries.
	commitEvery = 3 * time.Millisecond
	// busy is how many requests must be in flight before one of them waits for others.
	busy = 8
	// look is how often the waiting requests are counted.
	look = time.Millisecond
)

// pace delays a commit while that pays: until as many requests wait as were in flight lately, and never for longer than
// commitEvery after the last commit started. Sequential callers never wait for each other.
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

// begin records a commit of n requests.
func (p *pace) begin(n int) { p.began, p.last = time.Now(), n }
