package event

import (
	"fmt"

	"posthorn/domain/fault"
)

// batchDepth bounds the scanner's recursion over a whole batch. It is far above any emission's own bound, so that an
// item that nests too deep is refused alone, by Parse.
const batchDepth = 10_000

// SplitBatch cuts a batch, either {"events":[...]} or [...], into its items, each to be given to Parse. It refuses the
// batch as a whole only where its items can't be told apart: not JSON, not UTF-8, nested beyond all measure, no items
// or more than most, or a field that is not "events". The items alias body.
func SplitBatch(body []byte, most int) ([][]byte, error) {
	s := scanner{body: body, most: batchDepth, halves: true}
	s.space()
	wrapped := s.peek() == '{'
	if wrapped {
		s.at++
		s.space()
		if err := s.eventsField(); err != nil {
			return nil, err
		}
	}
	if s.peek() != '[' {
		if err := s.value(0); err != nil {
			return nil, err
		}
		return nil, fault.InvalidField("events", CodeFieldType, `A batch must be {"events": [...]} or an array.`)
	}
	items, err := s.items(most)
	if err != nil {
		return nil, err
	}
	s.space()
	if wrapped {
		if s.peek() == ',' {
			return nil, fault.InvalidField("events", CodeUnknownField, `A batch must have exactly one field, "events".`)
		}
		if !s.take('}') {
			return nil, s.unexpected("a comma or }")
		}
		s.space()
	}
	if s.at < len(s.body) {
		return nil, s.unexpected("the end")
	}
	if len(items) == 0 {
		return nil, fault.InvalidField("events", CodeBatchCount, "The batch has no events. Send at least one.")
	}
	return items, nil
}

// eventsField passes over the name "events" and its colon.
func (s *scanner) eventsField() error {
	if s.peek() == '}' {
		return fault.InvalidField("events", CodeBatchCount, `The batch has no events. Send them as {"events": [...]}.`)
	}
	if s.peek() != '"' {
		return s.unexpected("a field name in quotes")
	}
	name, err := s.text()
	if err != nil {
		return err
	}
	if string(name) != "events" {
		return fault.InvalidField("events", CodeUnknownField, `A batch must have exactly one field, "events".`)
	}
	s.space()
	if !s.take(':') {
		return s.unexpected("a colon")
	}
	s.space()
	return nil
}

// items cuts the array at hand. It stops at the bound: a body of a million zeroes makes no list of a million items.
func (s *scanner) items(most int) ([][]byte, error) {
	s.at++
	s.space()
	var items [][]byte
	if s.take(']') {
		return items, nil
	}
	for {
		if len(items) == most {
			return nil, fault.InvalidField("events", CodeBatchCount, fmt.Sprintf("A batch can have at most %d events. Send the rest in another batch.", most))
		}
		start := s.at
		if err := s.value(0); err != nil {
			return nil, err
		}
		items = append(items, s.body[start:s.at:s.at])
		s.space()
		if s.take(']') {
			return items, nil
		}
		if !s.take(',') {
			return nil, s.unexpected("a comma or ]")
		}
		s.space()
	}
}
