package daemon

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.etcd.io/bbolt"

	"github.com/chaind/chaind/emitter"
	"github.com/chaind/chaind/server"
)

// A chain whose record is damaged turns readiness red by name, its events are
// counted and published as rejected, and another chain is taken as ever.
func TestDamagedChainIsNamedAndStopsNoOther(t *testing.T) {
	url, dir := startTestBroker(t), t.TempDir()
	conn, err := emitter.Connect(emitter.ConnConfig{URL: url, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	d := runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: url}})
	publishSteps(t, js, 1, 3)
	waitUntil(t, "the first events", func() bool {
		return strings.Contains(metricsPage(d.HTTPURL), "chaind_intake_applied_sequence 3\n")
	})
	if err := d.stop(); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(filepath.Join(dir, "store", "chaind.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("chains"))
		key, value := b.Cursor().First()
		damaged := append([]byte(nil), value...)
		damaged[len(damaged)/2] ^= 1
		return b.Put(append([]byte(nil), key...), damaged)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	d = runDaemon(t, Config{DataDir: dir, NATS: NATSConfig{URL: url}})
	publishSteps(t, js, 4, 5)
	other := gapKey
	other.Chain = "other"
	if _, err := js.Publish(t.Context(), other.Subject("seal"), []byte(`{"v":1,"event_id":"z","outcome":"failed","reason":"r"}`)); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the other chain, sealed", func() bool {
		page, err := fetch(d.HTTPURL + "/v1/chains/acme/" + other.PromptHash + "/" + other.Session + "/other")
		return err == nil && strings.Contains(page, `"sealed":{`)
	})
	turns(t, d.HTTPURL, server.CauseDamage, true)
	waitUntil(t, "the rejected events", func() bool {
		page := metricsPage(d.HTTPURL)
		return strings.Contains(page, `chaind_events_total{class="chain_damaged",verdict="rejected"} 2`+"\n") &&
			strings.Contains(page, "chaind_rejections_unpublished 0\n")
	})
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}
