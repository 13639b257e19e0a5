package natsobj

import (
	"testing"

	"go.uber.org/goleak"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// One per process, started by the server's account and process statistics.
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/pse.periodic"),
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.init.0.func1"),
	)
}
