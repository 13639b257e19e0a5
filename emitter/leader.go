package emitter

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// leaderAnswer is what the broker says to a request for one message.
type leaderAnswer struct {
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Data    []byte    `json:"data"` // base 64
		Time    time.Time `json:"time"`
	} `json:"message"`
	Error *jetstream.APIError `json:"error"`
}

// message asks the stream's leader for the first message at or behind a
// sequence, or with exact for the one at it; ok is false when the leader holds
// none. The client library would ask any replica of a stream that allows direct
// access, or a mirror: one that is late has no message where the stream has one,
// and says the same of it as of one that was lost.
func (s *session) message(ctx context.Context, seq uint64, exact bool) (m events.Message, ok bool, err error) {
	request := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	if !exact {
		request = append(request, `,"next_by_subj":">"`...)
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	js := s.in.cfg.JS
	reply, err := js.Conn().RequestWithContext(ctx, apiPrefix(js.Options())+"STREAM.MSG.GET."+s.id.Name, append(request, '}'))
	if err != nil {
		return m, false, fmt.Errorf("read message %d: %w", seq, err)
	}
	var answer leaderAnswer
	switch err := json.Unmarshal(reply.Data, &answer); {
	case err != nil:
		return m, false, fmt.Errorf("read message %d: %w", seq, err)
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return m, false, nil
	case answer.Error != nil:
		return m, false, fmt.Errorf("read message %d: %w", seq, answer.Error)
	case answer.Message == nil || answer.Message.Seq < seq || exact && answer.Message.Seq != seq:
		return m, false, fmt.Errorf("read message %d: the broker answers with another", seq)
	}
	found := answer.Message
	return events.Message{Subject: found.Subject, Payload: found.Data, StreamSeq: found.Seq, BrokerMS: unixMS(found.Time)}, true, nil
}
