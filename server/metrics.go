package server

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/chaind/chaind/events"
)

// Verification results, as label "result" of chaind_verifications_total.
const (
	resultPassed      = "passed"
	resultRefused     = "refused"     // read, and not what it must be
	resultUndecodable = "undecodable" // no evidence bundle at all
	resultMissing     = "missing"     // the file named by a record has gone
	resultUnavailable = "unavailable" // could not be read, or no verification was free
)

// Metrics are the daemon's series in a registry of their own. All series of
// the fixed label values below exist with zero from the start, so that alerts
// on them can fire:
//
//	chaind_events_total{verdict,class}           events by effect; class only with verdict="rejected"
//	chaind_batches_total                         durable transactions
//	chaind_batch_events                          histogram, events in one transaction
//	chaind_commit_seconds                        histogram, time of one transaction
//	chaind_seals_total{class}                    sealed chains: heads, unplanned, nonconforming, empty
//	chaind_verifications_total{result}           before serving: passed, refused, undecodable, missing, unavailable
//	chaind_verdict_lookups_total{outcome}        remembered verdicts: hit, miss
//	chaind_http_requests_total{route,code}       code is the class: 2xx, 3xx, 4xx, 5xx
//	chaind_http_request_seconds{route}           histogram
//	chaind_http_in_flight                        requests being answered
//	chaind_http_panics_total                     recovered panics of handlers
//	chaind_intake_connected                      1: connected and consuming
//	chaind_intake_applied_sequence               last stream sequence whose effect is durable
//	chaind_intake_lag_messages                   messages in the stream that are not applied yet
//	chaind_intake_lag_seconds                    age of the oldest of them, as far as known
//	chaind_seal_jobs{state}                      pending, failed (tried at least once in vain)
//	chaind_rejections_unpublished                rejections waiting for their stream
//	chaind_lost_ranges, chaind_lost_messages     stream sequences recorded as lost
//	chaind_stream_epochs                         histories of the stream that the store has seen
//	chaind_stream_weakness{setting}              1: the stream's setting weakens evidence
//	chaind_key_state{state}                      1 for the state that holds: none, ready, stale
//	chaind_store_bytes                           size of the database file
//	chaind_disk_free_bytes{dir}                  free for the data and artifacts directories; NaN: unknown
//	chaind_checks_done                           scheduled checks of everything stored
//	chaind_check_last_timestamp_seconds          when the last one ended
//	chaind_check_findings                        what it found
//	chaind_evidence_checked                      1: existing evidence has been compared with what was sealed
//	chaind_evidence_files{state}                 found damaged: repaired, damaged (still)
//	chaind_chains_open                           chains that have not ended, when last counted
//	chaind_attempts_open                         steps in them that have begun and neither ended nor failed
//	chaind_open_counted_timestamp_seconds        when that was
//	chaind_ready                                 1: ready
//	chaind_not_ready{cause}                      1 for each cause that holds
//	chaind_build_info{version}                   1
//
// The Go runtime's and the process's usual series are added.
type Metrics struct {
	registry *prometheus.Registry

	events        *prometheus.CounterVec
	batches       prometheus.Counter
	batchEvents   prometheus.Histogram
	commit        prometheus.Histogram
	seals         *prometheus.CounterVec
	verifications *prometheus.CounterVec
	lookups       *prometheus.CounterVec
	requests      *prometheus.CounterVec
	latency       *prometheus.HistogramVec
	inFlight      prometheus.Gauge
	panics        prometheus.Counter
}

// Event classes, seal classes and request code classes that exist from the
// start.
var (
	eventVerdicts = []events.Verdict{events.Appended, events.Attempted, events.Finished, events.Duplicate, events.Late}
	classes       = []events.Class{
		events.BadSubject, events.TooLarge, events.Malformed, events.TooDeep, events.DuplicateName, events.BadID,
		events.UnsafeInteger, events.UnknownMember, events.Conflict, events.ScopeContradiction, events.DigestMismatch,
		events.TopoMismatch, events.RunIDMismatch, events.ChainDamaged,
	}
	sealClasses = []string{"heads", "unplanned", "nonconforming", "empty"}
	results     = []string{resultPassed, resultRefused, resultUndecodable, resultMissing, resultUnavailable}
	codeClasses = []string{"2xx", "3xx", "4xx", "5xx"}
)

// NewMetrics makes the series. version names the program. state is called for
// each scrape and must return quickly; nil stands for a zero Snapshot.
func NewMetrics(version string, state func() Snapshot) *Metrics {
	m := &Metrics{
		registry:      prometheus.NewRegistry(),
		events:        counters("chaind_events_total", "Events by effect; class names why an event was rejected.", "verdict", "class"),
		batches:       prometheus.NewCounter(prometheus.CounterOpts{Name: "chaind_batches_total", Help: "Durable transactions."}),
		batchEvents:   histogram("chaind_batch_events", "Events in one durable transaction.", prometheus.ExponentialBuckets(1, 4, 8)),
		commit:        histogram("chaind_commit_seconds", "Time of one durable transaction.", prometheus.ExponentialBuckets(0.0005, 2, 15)),
		seals:         counters("chaind_seals_total", "Sealed chains by where their evidence lies.", "class"),
		verifications: counters("chaind_verifications_total", "Verifications before serving, by result.", "result"),
		lookups:       counters("chaind_verdict_lookups_total", "Look-ups of remembered verdicts.", "outcome"),
		requests:      counters("chaind_http_requests_total", "Requests answered, by route and class of status.", "route", "code"),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "chaind_http_request_seconds",
			Help: "Time from header to last byte handed over.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 8)}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "chaind_http_in_flight", Help: "Requests being answered."}),
		panics:   prometheus.NewCounter(prometheus.CounterOpts{Name: "chaind_http_panics_total", Help: "Recovered panics of handlers."}),
	}
	if state == nil {
		state = func() Snapshot { return Snapshot{} }
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "chaind_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(m.events, m.batches, m.batchEvents, m.commit, m.seals, m.verifications, m.lookups, m.requests,
		m.latency, m.inFlight, m.panics, build, &stateCollector{state: state},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.fill()
	return m
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

// fill makes every fixed series exist.
func (m *Metrics) fill() {
	for _, v := range eventVerdicts {
		m.events.WithLabelValues(string(v), "")
	}
	for _, c := range classes {
		m.events.WithLabelValues(string(events.Rejected), string(c))
	}
	fillOne(m.seals, sealClasses)
	fillOne(m.verifications, results)
	fillOne(m.lookups, []string{"hit", "miss"})
	for _, route := range routeNames() {
		m.latency.WithLabelValues(route)
		for _, code := range codeClasses {
			m.requests.WithLabelValues(route, code)
		}
	}
}

func fillOne(v *prometheus.CounterVec, values []string) {
	for _, value := range values {
		v.WithLabelValues(value)
	}
}

// Committed counts one durable transaction with its effects.
func (m *Metrics) Committed(effects []events.Effect, took time.Duration) {
	m.batches.Inc()
	m.batchEvents.Observe(float64(len(effects)))
	m.commit.Observe(took.Seconds())
	for i := range effects {
		class := ""
		if effects[i].Fault != nil && effects[i].Verdict == events.Rejected {
			class = string(effects[i].Fault.Class)
		}
		m.events.WithLabelValues(string(effects[i].Verdict), class).Inc()
	}
}

// Sealed counts one sealed chain. Class is "heads", "unplanned" or
// "nonconforming"; "" stands for a chain without segments.
func (m *Metrics) Sealed(class string) {
	if class == "" {
		class = "empty"
	}
	if slices.Contains(sealClasses, class) {
		m.seals.WithLabelValues(class).Inc()
	}
}

// Register adds a collector of the daemon's own.
func (m *Metrics) Register(c prometheus.Collector) error { return m.registry.Register(c) }

func (m *Metrics) verified(result string) { m.verifications.WithLabelValues(result).Inc() }

func (m *Metrics) lookup(hit bool) {
	if hit {
		m.lookups.WithLabelValues("hit").Inc()
		return
	}
	m.lookups.WithLabelValues("miss").Inc()
}

func (m *Metrics) request(route string, status int, took time.Duration) {
	if status == 0 { // nothing was sent: the connection was broken off
		status = http.StatusInternalServerError
	}
	m.requests.WithLabelValues(route, strconv.Itoa(status/100)+"xx").Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
}
