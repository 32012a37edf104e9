package send

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/source"
)

// The limits of SQS.
const (
	sqsMaxReceived = 10       // messages of one request
	sqsMaxBatch    = 16 << 20 // bytes of a response
	sqsMaxMore     = 4 << 20  // bytes of each of the responses side by side
	sqsHidden      = 60       // seconds for which a message is not delivered again
	sqsOpen        = 15 * time.Second
)

// sqsReceiver reads a queue by long polling.
type sqsReceiver struct {
	of     *sqsTransport
	to     *endpoint.SQSConnection
	most   int
	sample bool
}

// Open asks for the queue's state: whether it exists, and can be read.
func (r *sqsReceiver) Open(ctx context.Context, _ Begin) error {
	_, err := r.Waiting(ctx)
	return err
}

// call calls an action of the queue.
func (r *sqsReceiver) call(ctx context.Context, action string, in map[string]any, most int64, out any) error {
	in["QueueUrl"] = r.to.QueueURL
	status, text, err := r.of.call(ctx, r.to, action, in, most)
	switch {
	case err != nil:
		return receiveError(awsFailed(ctx, err))
	case status != http.StatusOK:
		return receiveError(sqsSaid(status, text))
	}
	if err := json.Unmarshal(text, out); err != nil {
		return receiveError(sqsSaid(http.StatusAccepted, text))
	}
	return nil
}

// sqsReceived is a message as the action ReceiveMessage returns it.
type sqsReceived struct {
	ID         string            `json:"MessageId"`
	Handle     string            `json:"ReceiptHandle"`
	Body       string            `json:"Body"`
	System     map[string]string `json:"Attributes"`
	Attributes map[string]struct {
		Text  string `json:"StringValue"`
		Bytes []byte `json:"BinaryValue"`
	} `json:"MessageAttributes"`
}

// Receive waits for some messages, and then reads more in requests side by side while there are more. A request that is
// broken off can hide messages, so each has more time than it needs.
func (r *sqsReceiver) Receive(ctx context.Context, wait time.Duration) ([]source.Message, source.Moves, error) {
	messages, err := r.receive(ctx, int(wait.Seconds()), sqsMaxBatch)
	size := 0
	for _, m := range messages {
		size += len(m.Text)
	}
	if err != nil || len(messages) < sqsMaxReceived || r.most <= sqsMaxReceived || size > sqsMaxMore/4 {
		return messages, nil, err
	}
	var more sync.WaitGroup
	var mu sync.Mutex
	for range r.most/sqsMaxReceived - 1 {
		more.Go(func() {
			some, _ := r.receive(ctx, 0, sqsMaxMore) // the next call shows what is wrong
			mu.Lock()
			defer mu.Unlock()
			messages = append(messages, some...)
		})
	}
	more.Wait()
	return messages, nil, nil
}

func (r *sqsReceiver) receive(ctx context.Context, wait int, most int64) ([]source.Message, error) {
	in := map[string]any{
		"MaxNumberOfMessages":   min(r.most, sqsMaxReceived),
		"WaitTimeSeconds":       wait,
		"VisibilityTimeout":     sqsHidden,
		"AttributeNames":        []string{"All"},
		"MessageAttributeNames": []string{"All"},
	}
	if r.sample {
		in["VisibilityTimeout"], in["WaitTimeSeconds"] = 0, min(wait, 2)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(wait)*time.Second+sqsOpen)
	defer cancel()
	var out struct {
		Messages []sqsReceived `json:"Messages"`
	}
	if err := r.call(ctx, "ReceiveMessage", in, most, &out); err != nil {
		return nil, err
	}
	messages := make([]source.Message, len(out.Messages))
	for i, m := range out.Messages {
		messages[i] = source.Message{ID: m.ID, Key: m.System["MessageGroupId"], Queue: source.Settings{Connection: r.to}.Queue(), Handle: m.Handle}
		if ms, err := strconv.ParseInt(m.System["SentTimestamp"], 10, 64); err == nil && ms > 0 && ms < 1<<47 {
			messages[i].Time = new(time.UnixMilli(ms).UTC())
		}
		if len(m.Attributes) > 0 {
			messages[i].Headers = make(map[string]string, len(m.Attributes))
		}
		for name, a := range m.Attributes {
			if messages[i].Headers[name] = a.Text; a.Bytes != nil {
				messages[i].Headers[name] = base64.StdEncoding.EncodeToString(a.Bytes)
			}
		}
		messages[i].SetBody([]byte(m.Body))
	}
	return messages, nil
}

// Acknowledge deletes messages. One that can't be deleted is delivered again, and recognized.
func (r *sqsReceiver) Acknowledge(ctx context.Context, messages []source.Message) error {
	var all sync.WaitGroup
	errs := make([]error, (len(messages)+sqsMaxReceived-1)/sqsMaxReceived)
	for n := range errs {
		some := messages[n*sqsMaxReceived : min((n+1)*sqsMaxReceived, len(messages))]
		all.Go(func() {
			entries := make([]map[string]string, len(some))
			for i, m := range some {
				entries[i] = map[string]string{"Id": strconv.Itoa(i), "ReceiptHandle": m.Handle.(string)}
			}
			var out struct {
				Failed []struct{ Code, Message string } `json:"Failed"`
			}
			if errs[n] = r.call(ctx, "DeleteMessageBatch", map[string]any{"Entries": entries}, sqsMaxAnswer, &out); errs[n] == nil && len(out.Failed) == len(some) {
				errs[n] = receiveError(sqsRejected(delivery.Clip(out.Failed[0].Code, 40), out.Failed[0].Message))
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *sqsReceiver) Waiting(ctx context.Context) (int64, error) {
	bounded, cancel := context.WithTimeout(ctx, sqsOpen)
	defer cancel()
	var out struct {
		Attributes map[string]string `json:"Attributes"`
	}
	if err := r.call(bounded, "GetQueueAttributes", map[string]any{"AttributeNames": []string{"ApproximateNumberOfMessages"}}, sqsMaxAnswer, &out); err != nil {
		return 0, err
	}
	n, _ := strconv.ParseInt(out.Attributes["ApproximateNumberOfMessages"], 10, 64)
	return n, nil
}

// Close has nothing to do: the connections are the transport's.
func (*sqsReceiver) Close() {}
