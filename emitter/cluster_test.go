package emitter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// crossing is the only way from one server of a cluster to another, and can be shut.
type crossing struct {
	l      net.Listener
	mu     sync.Mutex
	target string // "": the other server does not run yet
	conns  map[net.Conn]bool
	done   sync.WaitGroup
}

func newCrossing(t *testing.T) *crossing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &crossing{l: l, conns: map[net.Conn]bool{}}
	g.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.pass(c)
		}
	})
	t.Cleanup(func() { _ = l.Close(); g.lead(""); g.done.Wait() })
	return g
}

// lead opens the crossing to an address, or shuts it.
func (g *crossing) lead(target string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.target = target; target == "" {
		for c := range g.conns {
			_ = c.Close()
		}
		clear(g.conns)
	}
}

func (g *crossing) pass(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	other, err := net.Conn(nil), errors.New("shut")
	if g.target != "" {
		other, err = net.Dial("tcp", g.target)
	}
	if err != nil {
		_ = c.Close()
		return
	}
	g.conns[c], g.conns[other] = true, true
	for _, ends := range [2][2]net.Conn{{c, other}, {other, c}} {
		g.done.Go(func() {
			_, _ = io.Copy(ends[0], ends[1])
			_, _ = ends[0].Close(), ends[1].Close()
		})
	}
}

// cluster is three servers with a crossing from each to each.
type cluster struct {
	servers   [3]*broker
	crossings [3][3]*crossing
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	for i := range c.crossings {
		for j := range c.crossings {
			c.crossings[i][j] = newCrossing(t)
		}
	}
	for i := range c.servers {
		c.servers[i] = newBroker(t, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("n%d", i)
			// Nobody finds the server but through the crossings.
			o.Cluster = server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: -1, Advertise: "127.0.0.1:1"}
			for j := range c.crossings {
				if j != i {
					o.Routes = append(o.Routes, server.RoutesFromStr("nats://"+c.crossings[i][j].l.Addr().String())...)
				}
			}
		})
	}
	for i := range c.servers {
		c.join(i)
	}
	return c
}

// join and part put a server into the cluster and out of it.
func (c *cluster) join(i int) {
	for j := range c.servers {
		c.crossings[i][j].lead(c.servers[j].srv.ClusterAddr().String())
		c.crossings[j][i].lead(c.servers[i].srv.ClusterAddr().String())
	}
}

func (c *cluster) part(i int) {
	for j := range c.servers {
		c.crossings[i][j].lead("")
		c.crossings[j][i].lead("")
	}
}

// follower is a server that leads neither the stream nor the cluster, and holds all of the stream.
func (c *cluster) follower(t *testing.T, last uint64) int {
	t.Helper()
	found := -1
	inTime(t, "a follower has all", func() bool {
		for i, b := range c.servers {
			srv := b.srv
			if srv.JetStreamIsLeader() || srv.JetStreamIsStreamLeader("$G", DefaultStream) || !srv.JetStreamIsStreamCurrent("$G", DefaultStream) {
				continue
			}
			z, err := srv.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
			if err != nil || len(z.AccountDetails) != 1 || len(z.AccountDetails[0].Streams) != 1 || z.AccountDetails[0].Streams[0].State.LastSeq != last {
				continue
			}
			found = i
		}
		return found >= 0
	})
	return found
}

// inTime is eventually with time for elections.
func inTime(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	waitUntil(ctx, t, 20*time.Millisecond, what, holds)
}

// TestFollowerOutOfReachSaysNothingIsLost: three servers, a stream of three replicas
// with direct access, and a follower that the others do not reach. To a client of
// that follower the client library says that messages are not there which the stream
// has; the daemon there gets an error, and reads them when the follower is back.
func TestFollowerOutOfReachSaysNothingIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers elect leaders")
	}
	t.Parallel()
	c := newCluster(t)
	cfg := StreamConfig{Replicas: 3}.withDefaults().stream(DefaultStream, events.SubjectRoot)
	cfg.AllowDirect = true
	js := c.servers[0].js()
	inTime(t, "the stream is made", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := js.CreateOrUpdateStream(ctx, cfg)
		return err == nil
	})
	publish := func(js jetstream.JetStream, n int) {
		inTime(t, "published", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := js.PublishMsg(ctx, stepEvent("c", n), jetstream.WithExpectLastSequence(uint64(n-1)))
			var api *jetstream.APIError
			return err == nil || errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
		})
	}
	for n := 1; n <= 3; n++ {
		publish(js, n)
	}
	late := c.follower(t, 3)
	there := c.servers[late].js()
	stream, err := there.Stream(deadline(t), DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	c.part(late)
	publish(c.servers[(late+1)%3].js(), 4)

	inTime(t, "the client library says that the message is not there", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := stream.GetMsg(ctx, 4)
		return errors.Is(err, jetstream.ErrMsgNotFound)
	})
	s := testSession(IntakeConfig{JS: there})
	s.stream, s.id, s.next = stream, identity(stream.CachedInfo()), 4
	brief, cancel := context.WithTimeout(t.Context(), time.Second) // nobody may answer
	defer cancel()
	if err := s.fill(brief, 5); err == nil || !s.hand.empty() {
		t.Errorf("out of reach something is recorded: %v", err)
	}
	c.join(late)
	inTime(t, "the leader is asked", func() bool {
		m, ok, err := s.message(deadline(t), 4, true)
		return err == nil && ok && m.StreamSeq == 4
	})
}
