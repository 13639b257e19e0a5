package server

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/chaind/chaind/events"
	"github.com/chaind/chaind/store"
)

// Cause is one reason why the daemon is not ready. Names are short and fixed,
// details are one sentence without secrets or payloads, for operators: they may
// name chains of any tenant, and files.
type Cause struct {
	Name   string `json:"cause"`
	Detail string `json:"detail"`
}

// Names of causes. Each has a gauge from the start; the daemon may add others.
const (
	CauseStarting       = "starting"
	CauseStopping       = "stopping"
	CauseDisconnected   = "intake_disconnected" // no connection to the broker
	CauseConsumer       = "consumer_missing"    // the consumer has gone
	CauseStream         = "stream_missing"      // the stream has gone
	CauseIntakeStopped  = "intake_stopped"      // the intake ended though it should run
	CauseStoreFailed    = "store_failed"        // the last transaction failed
	CauseStoreReadOnly  = "store_read_only"
	CauseDisk           = "disk_nearly_full"
	CauseLag            = "lag"            // intake is too far behind
	CauseSeals          = "seals_stuck"    // seal jobs fail or wait too long
	CauseOutbox         = "outbox_stuck"   // rejections cannot be published
	CauseSigningKey     = "signing_key"    // reload failed, the old one is in use
	CauseTrustList      = "trust_list"     // reload failed, the old one is in use
	CauseDamage         = "damaged"        // a check found damage, or could not be done
	CauseTokens         = "tokens"         // reload failed, the old ones are in use
	CauseCertificate    = "certificate"    // reload failed, the old one is in use
	CauseLogLevel       = "log_level"      // reload failed, the old one is in use
	CauseReadinessCheck = "check_panicked" // the readiness check itself failed
)

// CauseNames lists the fixed causes.
func CauseNames() []string {
	return []string{
		CauseStarting, CauseStopping, CauseDisconnected, CauseConsumer, CauseStream, CauseIntakeStopped, CauseStoreFailed,
		CauseStoreReadOnly, CauseDisk, CauseLag, CauseSeals, CauseOutbox, CauseSigningKey, CauseTrustList, CauseTokens, CauseCertificate, CauseLogLevel,
		CauseReadinessCheck, CauseDamage,
	}
}

// KeyState says what the daemon signs with.
type KeyState string

const (
	KeyNone  KeyState = "none"  // nothing is signed
	KeyReady KeyState = "ready" // the configured key is in use
	KeyStale KeyState = "stale" // a reload failed, the key before is in use
)

// Weaknesses lists the stream settings that weaken evidence and have a gauge
// from the start.
func Weaknesses() []string {
	var names []string
	for _, w := range []events.Weakness{events.WeakMemory, events.WeakDiscard, events.WeakMaxAge, events.WeakOneReplica, events.FsyncUnknown} {
		names = append(names, string(w))
	}
	return names
}

// Snapshot is the daemon's state at one moment, for gauges.
type Snapshot struct {
	IntakeConnected   bool
	AppliedSequence   uint64            // last stream sequence whose effect is durable
	LagMessages       uint64            // in the stream, not applied
	LagSeconds        float64           // age of the oldest of them; 0: none or unknown
	SealsPending      uint64            // seal jobs
	SealsFailed       uint64            // seal jobs tried at least once in vain
	RejectionsWaiting uint64            // in the outbox
	LostRanges        uint64            // recorded
	LostMessages      uint64            // stream sequences within them
	StreamEpochs      uint64            // histories of the stream
	StreamWeaknesses  []string          // of Weaknesses, or others
	Key               KeyState          // "" is KeyNone
	StoreBytes        int64             // size of the database file
	DiskFree          map[string]uint64 // bytes, by directory: "data", "artifacts"; absent: unknown
	Checks            uint64            // scheduled checks done, of everything stored
	CheckedAt         time.Time         // end of the last; zero: none yet
	CheckFindings     uint64            // of the last
	EvidenceChecked   bool              // the look at existing evidence, begun at the start or with the last check, has ended
	EvidenceRepaired  uint64            // evidence files that were damaged and are written anew
	EvidenceDamaged   uint64            // evidence files that are not what was sealed, or cannot be checked
	// EvidenceContradicting is how many sealed chains have no evidence file, since
	// that of another scope stands under their head.
	EvidenceContradicting uint64
	Open                  Census  // chains and attempts under way
	Causes                []Cause // why the daemon is not ready; empty: ready
}

// Census is a count of what is under way at one moment.
type Census struct {
	store.Census
	At time.Time // when they were counted; zero: not yet
}

// stateCollector turns a Snapshot into gauges at each scrape.
type stateCollector struct{ state func() Snapshot }

var (
	descConnected  = gaugeDesc("chaind_intake_connected", "1: connected to the broker and consuming.")
	descApplied    = gaugeDesc("chaind_intake_applied_sequence", "Last stream sequence whose effect is durable.")
	descLag        = gaugeDesc("chaind_intake_lag_messages", "Messages in the stream that are not applied yet.")
	descLagSeconds = gaugeDesc("chaind_intake_lag_seconds", "Age of the oldest message that is not applied yet.")
	descSealJobs   = gaugeDesc("chaind_seal_jobs", "Seal jobs by state.", "state")
	descOutbox     = gaugeDesc("chaind_rejections_unpublished", "Rejections waiting for their stream.")
	descLostRanges = gaugeDesc("chaind_lost_ranges", "Ranges of stream sequences recorded as lost.")
	descLost       = gaugeDesc("chaind_lost_messages", "Stream sequences within lost ranges.")
	descEpochs     = gaugeDesc("chaind_stream_epochs", "Histories of the stream that the store has seen.")
	descWeakness   = gaugeDesc("chaind_stream_weakness", "1: this setting of the stream weakens evidence.", "setting")
	descKey        = gaugeDesc("chaind_key_state", "1 for the state of the signing key that holds.", "state")
	descStoreBytes = gaugeDesc("chaind_store_bytes", "Size of the database file.")
	descDisk       = gaugeDesc("chaind_disk_free_bytes", "Bytes free for the directory; NaN: unknown.", "dir")
	descChecks     = gaugeDesc("chaind_checks_done", "Scheduled checks of everything stored, since the start.")
	descCheckedAt  = gaugeDesc("chaind_check_last_timestamp_seconds", "When the last check ended; 0: none yet.")
	descFindings   = gaugeDesc("chaind_check_findings", "Findings of the last check.")
	descEvidence   = gaugeDesc("chaind_evidence_files", "Sealed chains whose evidence file was damaged, by what became of it, or that have none since another scope's stands under their head (contradicting).", "state")
	descLooked     = gaugeDesc("chaind_evidence_checked", "1: existing evidence has been compared with what was sealed; 0: under way since the start or the last check.")
	descChains     = gaugeDesc("chaind_chains_open", "Chains that have not ended, when they were last counted.")
	descAttempts   = gaugeDesc("chaind_attempts_open", "Steps of open chains that have begun and neither ended nor failed.")
	descCounted    = gaugeDesc("chaind_open_counted_timestamp_seconds", "When open chains and attempts were last counted; 0: not yet.")
	descReady      = gaugeDesc("chaind_ready", "1: ready.")
	descNotReady   = gaugeDesc("chaind_not_ready", "1 for each cause that keeps the daemon from being ready.", "cause")
)

func gaugeDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descConnected, descApplied, descLag, descLagSeconds, descSealJobs, descOutbox, descLostRanges, descLost,
		descEpochs, descWeakness, descKey, descStoreBytes, descDisk, descChecks, descCheckedAt, descFindings, descEvidence, descLooked, descChains, descAttempts, descCounted, descReady, descNotReady} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *stateCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.state()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(descConnected, bit(s.IntakeConnected))
	gauge(descApplied, float64(s.AppliedSequence))
	gauge(descLag, float64(s.LagMessages))
	gauge(descLagSeconds, s.LagSeconds)
	gauge(descSealJobs, float64(s.SealsPending), "pending")
	gauge(descSealJobs, float64(s.SealsFailed), "failed")
	gauge(descOutbox, float64(s.RejectionsWaiting))
	gauge(descLostRanges, float64(s.LostRanges))
	gauge(descLost, float64(s.LostMessages))
	gauge(descEpochs, float64(s.StreamEpochs))
	gauge(descStoreBytes, float64(s.StoreBytes))
	for _, dir := range []string{"data", "artifacts"} {
		free, known := s.DiskFree[dir]
		if !known {
			gauge(descDisk, math.NaN(), dir)
			continue
		}
		gauge(descDisk, float64(free), dir)
	}
	gauge(descChecks, float64(s.Checks))
	gauge(descCheckedAt, unixSeconds(s.CheckedAt))
	gauge(descFindings, float64(s.CheckFindings))
	gauge(descEvidence, float64(s.EvidenceRepaired), "repaired")
	gauge(descEvidence, float64(s.EvidenceDamaged), "damaged")
	gauge(descEvidence, float64(s.EvidenceContradicting), "contradicting")
	gauge(descLooked, bit(s.EvidenceChecked))
	gauge(descChains, float64(s.Open.Chains))
	gauge(descAttempts, float64(s.Open.Attempts))
	gauge(descCounted, unixSeconds(s.Open.At))
	gauge(descReady, bit(len(s.Causes) == 0))
	for setting, holds := range oneHot(Weaknesses(), s.StreamWeaknesses) {
		gauge(descWeakness, bit(holds), setting)
	}
	key := s.Key
	if key == "" {
		key = KeyNone
	}
	for state, holds := range oneHot([]string{string(KeyNone), string(KeyReady), string(KeyStale)}, []string{string(key)}) {
		gauge(descKey, bit(holds), state)
	}
	names := make([]string, len(s.Causes))
	for i, cause := range s.Causes {
		names[i] = cause.Name
	}
	for cause, holds := range oneHot(CauseNames(), names) {
		gauge(descNotReady, bit(holds), cause)
	}
}

// oneHot maps every fixed and every present name to whether it is present.
func oneHot(fixed, present []string) map[string]bool {
	m := make(map[string]bool, len(fixed)+len(present))
	for _, name := range fixed {
		m[name] = slices.Contains(present, name)
	}
	for _, name := range present {
		m[name] = true
	}
	return m
}

func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
