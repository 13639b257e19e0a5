package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/internal/daemon"
)

// TestClusterConfigurationOfThree loads the cluster's file into three servers,
// runs a daemon on them with three replicas, and takes away the server that
// leads the stream: the next run lands and verifies as the one before did.
func TestClusterConfigurationOfThree(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers elect leaders")
	}
	t.Setenv("NATS_ROUTE_PASSWORD", "route-secret")
	ports := freePorts(t, 3)
	for i, port := range ports {
		t.Setenv(fmt.Sprintf("NATS_ROUTE_%d", i+1), fmt.Sprintf("nats://route:route-secret@127.0.0.1:%d", port))
	}
	var servers []*natsserver.Server
	for i, port := range ports {
		t.Setenv("NATS_NAME", fmt.Sprintf("nats-%d", i+1))
		options := natsOptions(t, "cluster/nats.conf")
		if len(options.Routes) != 3 || options.Cluster.Username != "route" || options.ServerName != fmt.Sprintf("nats-%d", i+1) {
			t.Fatalf("%d routes, user %q, name %q", len(options.Routes), options.Cluster.Username, options.ServerName)
		}
		options.Cluster.Host, options.Cluster.Port = "127.0.0.1", port
		servers = append(servers, launchNATS(t, options))
	}
	for _, srv := range servers {
		if !srv.ReadyForConnections(30 * time.Second) {
			t.Fatal("server is not ready")
		}
	}
	var addresses []string
	for _, srv := range servers {
		addresses = append(addresses, srv.ClientURL())
	}
	awaitCluster(t, servers)
	artifacts := t.TempDir()
	startDaemon(t, daemon.Config{HTTP: daemon.HTTPConfig{Listen: "off"}, ArtifactsDir: artifacts,
		NATS: daemon.NATSConfig{URL: strings.Join(addresses, ","), User: "chaind", Password: natsDaemonPassword, Replicas: 3}})
	conn := connectAcme(t, servers[0].ClientURL())
	heads := []string{publishRun(t, conn, "on-three")}

	admin, err := nats.Connect(servers[0].ClientURL(), nats.UserInfo("chaind", natsDaemonPassword))
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	js, err := jetstream.New(admin)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "EVIDENCE")
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().Config.Replicas; n != 3 {
		t.Errorf("%d replicas", n)
	}

	stopLeader(t, servers)
	for _, head := range append(heads, publishRun(t, conn, "on-two")) {
		verifiesSoon(t, artifacts, head)
	}
}

// stopLeader takes away the server that leads the stream of events.
func stopLeader(t *testing.T, servers []*natsserver.Server) {
	t.Helper()
	for _, srv := range servers {
		if srv.JetStreamIsStreamLeader("$G", "EVIDENCE") {
			srv.Shutdown()
			srv.WaitForShutdown()
			return
		}
	}
	t.Fatal("nobody leads the stream")
}

// verifiesSoon waits until the evidence of a head has been written, and verifies it.
func verifiesSoon(t *testing.T, artifacts, head string) {
	t.Helper()
	file := awaitEvidence(t, artifacts, head)
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"verify", file}, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Errorf("verify %s: exit code %d: %s%s", file, code, &out, &errs)
	}
}

func awaitEvidence(t *testing.T, artifacts, head string) string {
	t.Helper()
	var found string
	var err error
	if !until(func() bool {
		err = filepath.WalkDir(artifacts, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, head+".evidence.json") {
				found = path
			}
			return err
		})
		return err == nil && found != ""
	}) {
		t.Fatalf("no evidence of %s: %v", head, err)
	}
	return found
}

// awaitCluster waits until JetStream has a leader and sees all three.
func awaitCluster(t *testing.T, servers []*natsserver.Server) {
	t.Helper()
	leads := func(srv *natsserver.Server) bool {
		return srv.JetStreamIsLeader() && len(srv.JetStreamClusterPeers()) == len(servers)
	}
	if !until(func() bool { return slices.ContainsFunc(servers, leads) }) {
		t.Fatal("the three servers found no leader")
	}
}
