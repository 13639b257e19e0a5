package emitter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/chaind/chaind/events"
)

// StreamConfig says which streams the daemon expects. The zero value is complete.
type StreamConfig struct {
	Evidence      string // stream of events; "": DefaultStream
	Rejected      string // stream of rejected events; "": DefaultRejectedStream
	Replicas      int    // 1 to 5; 0: 1
	MaxEventBytes int    // payload limit of one event; 0: DefaultMaxEventBytes
}

func (c StreamConfig) withDefaults() StreamConfig {
	if c.Evidence == "" {
		c.Evidence = DefaultStream
	}
	if c.Rejected == "" {
		c.Rejected = DefaultRejectedStream
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.MaxEventBytes <= 0 {
		c.MaxEventBytes = DefaultMaxEventBytes
	}
	return c
}

// Warning is one weakening setting of one stream.
type Warning struct {
	Stream   string
	Weakness events.Weakness
	Detail   string // the setting as found, and as wanted where that helps
}

func (w Warning) String() string {
	return w.Stream + ": " + string(w.Weakness) + ": " + w.Detail
}

// Streams is what [EnsureStreams] found or made.
type Streams struct {
	Evidence events.Stream // identity of the stream of events
	Rejected events.Stream
	Created  []string  // names of the streams that were missing
	Warnings []Warning // never empty when a setting weakens the evidence
}

// EnsureStreams creates the streams that are missing: file storage, limits
// retention, discard new, no limit of age, count or size. Existing streams are
// left as they are, whatever cfg says; what weakens them is in the warnings.
// It fails when the broker does not answer, has no JetStream, or refuses.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, cfg StreamConfig) (*Streams, error) {
	cfg = cfg.withDefaults()
	found := &Streams{}
	for _, want := range []jetstream.StreamConfig{
		cfg.stream(cfg.Evidence, events.SubjectRoot),
		cfg.stream(cfg.Rejected, events.RejectedRoot),
	} {
		info, created, err := ensureStream(ctx, js, want)
		if err != nil {
			return nil, fmt.Errorf("ensure stream %s: %w", want.Name, err)
		}
		if created {
			found.Created = append(found.Created, want.Name)
		}
		found.Warnings = append(found.Warnings, weaknesses(info.Config, want)...)
		if want.Name == cfg.Evidence {
			found.Evidence = identity(info)
		} else {
			found.Rejected = identity(info)
		}
	}
	return found, nil
}

// eventWindow is the shortest duplicate window that JetStream takes. Within it a
// message whose Nats-Msg-Id was seen is dropped, whoever sent the first, on
// whatever subject. We have no use for it: the store knows events by chain, id
// and digest. The stream of rejected events is written by daemons alone, which
// rely on its window.
const eventWindow = 100 * time.Millisecond

func (c StreamConfig) stream(name, root string) jetstream.StreamConfig {
	window := time.Duration(0) // the server's choice
	if root == events.SubjectRoot {
		window = eventWindow
	}
	return jetstream.StreamConfig{
		Duplicates: window,
		Name:       name,
		Subjects:   []string{root + ".>"},
		Retention:  jetstream.LimitsPolicy,
		Storage:    jetstream.FileStorage,
		Discard:    jetstream.DiscardNew,
		Replicas:   c.Replicas,
		MaxMsgSize: int32(c.MaxEventBytes + streamHeadroom),
	}
}

// ensureStream reads the stream or creates it. Of two daemons that find it
// missing at once, the second reads what the first made.
func ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (*jetstream.StreamInfo, bool, error) {
	stream, err := js.Stream(ctx, want.Name)
	if err == nil {
		return stream.CachedInfo(), false, nil
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, false, err
	}
	stream, err = js.CreateStream(ctx, want)
	if err == nil {
		return stream.CachedInfo(), true, nil
	}
	if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil, false, &troubled{err, TroubleStream}
	}
	if stream, err = js.Stream(ctx, want.Name); err != nil {
		return nil, false, err
	}
	return stream.CachedInfo(), false, nil
}

func identity(info *jetstream.StreamInfo) events.Stream {
	return events.Stream{Name: info.Config.Name, CreatedNS: info.Created.UnixNano()}
}

// weaknesses lists what makes the stream as found weaker than wanted.
func weaknesses(got, want jetstream.StreamConfig) []Warning {
	var found []Warning
	warn := func(weak bool, w events.Weakness, detail string) {
		if weak {
			found = append(found, Warning{Stream: got.Name, Weakness: w, Detail: detail})
		}
	}
	warn(got.Storage != jetstream.FileStorage, events.WeakMemory, got.Storage.String())
	warn(got.Discard != jetstream.DiscardNew, events.WeakDiscard, got.Discard.String())
	warn(got.MaxAge > 0, events.WeakMaxAge, got.MaxAge.String())
	warn(got.MaxMsgs > 0, events.WeakMaxMsgs, strconv.FormatInt(got.MaxMsgs, 10))
	warn(got.MaxBytes > 0, events.WeakMaxBytes, strconv.FormatInt(got.MaxBytes, 10))
	warn(got.MaxMsgsPerSubject > 0, events.WeakPerChain, strconv.FormatInt(got.MaxMsgsPerSubject, 10))
	warn(got.Replicas <= 1, events.WeakOneReplica, strconv.Itoa(got.Replicas))
	warn(got.Replicas < want.Replicas, events.WeakReplicas, fmt.Sprintf("%d of %d", got.Replicas, want.Replicas))
	warn(got.Retention != jetstream.LimitsPolicy, events.WeakRetention, got.Retention.String())
	warn(!slices.Contains(got.Subjects, want.Subjects[0]), events.WeakSubjects,
		fmt.Sprintf("%q, not %q", got.Subjects, want.Subjects))
	warn(got.MaxMsgSize > 0 && got.MaxMsgSize < want.MaxMsgSize, events.WeakSize,
		fmt.Sprintf("%d, less than %d", got.MaxMsgSize, want.MaxMsgSize))
	warn(got.NoAck, events.WeakNoAck, "publishers are not answered")
	warn(got.AllowRollup, events.WeakRollup, "allowed")
	warn(got.AllowMsgTTL, events.WeakTTL, "allowed")
	warn(got.AllowDirect, events.WeakDirect, "allowed")
	warn(want.Duplicates > 0 && got.Duplicates > want.Duplicates, events.WeakWindow, got.Duplicates.String())
	return found
}

// settings are the weaknesses of the stream of events as found, sorted, as far
// as the stream alone shows them: how many replicas were asked for must not make
// the record of a replay another one.
func (c StreamConfig) settings(got jetstream.StreamConfig) []events.Weakness {
	var found []events.Weakness
	for _, w := range weaknesses(got, c.stream(c.Evidence, events.SubjectRoot)) {
		if w.Weakness != events.WeakReplicas {
			found = append(found, w.Weakness)
		}
	}
	slices.Sort(found)
	return found
}
