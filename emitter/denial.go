package emitter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// denialLook is how long an acknowledgement may take before the connection is
// looked at for a refusal, and how often it is looked at then. The broker answers
// a message that it refuses with nothing, and names the subject to the connection.
const denialLook = 20 * time.Millisecond

// untilDenied gives a context that ends, with [ErrDenied] or [ErrNoReplies] as its
// cause, when the broker refuses a publish on the subject, or our hearing of its
// answer. A refusal that was there before is not this publish's. stop frees what
// it holds.
func untilDenied(ctx context.Context, conn *nats.Conn, subject string) (watched context.Context, stop func()) {
	watched, cancel := context.WithCancelCause(ctx)
	before := conn.LastError()
	timer := time.AfterFunc(denialLook, func() {
		look := time.NewTicker(denialLook)
		defer look.Stop()
		for {
			if err := refusal(conn, before, subject); err != nil {
				cancel(err)
			}
			select {
			case <-watched.Done():
				return
			case <-look.C:
			}
		}
	})
	return watched, func() {
		timer.Stop()
		cancel(nil)
	}
}

// refusal is what the connection heard since, about a publish on the subject; or
// at any time, about our inbox: that is subscribed to only once.
func refusal(conn *nats.Conn, before error, subject string) error {
	err := conn.LastError()
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	if err != before && violates(err, "publish", subject, `"`) {
		return ErrDenied
	}
	inbox := strings.TrimSuffix(conn.Opts.InboxPrefix, ".")
	if inbox == "" {
		inbox = strings.TrimSuffix(nats.InboxPrefix, ".")
	}
	if violates(err, "subscription", inbox, ".") {
		return fmt.Errorf("%w: no permission to subscribe below %s", ErrNoReplies, inbox)
	}
	return nil
}

// violates tells whether the broker's words are about the verb and a subject that
// begins so, and goes on with next.
func violates(err error, verb, subject, next string) bool {
	text := err.Error()
	return strings.Contains(strings.ToLower(text), " for "+verb+" to ") && strings.Contains(text, `"`+subject+next)
}

// because replaces the error of a call whose context a refusal ended.
func because(watched context.Context, err error) error {
	if cause := context.Cause(watched); err != nil && (errors.Is(cause, ErrDenied) || errors.Is(cause, ErrNoReplies)) {
		return cause
	}
	return err
}
