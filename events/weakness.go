package events

// Weakness names a setting of a stream under which evidence can vanish or be
// refused. The names stand in trust bundles and metrics: one is never changed.
type Weakness string

// The settings that weaken evidence. WeakReplicas compares the stream with what
// was asked for, and FsyncUnknown is about the broker, not about a stream; the
// others can be read from the stream alone.
const (
	WeakMemory     Weakness = "memory_storage" // a restart of the broker loses everything
	WeakDiscard    Weakness = "discard_old"    // a full stream drops its oldest messages
	WeakMaxAge     Weakness = "max_age"        // messages expire
	WeakMaxMsgs    Weakness = "max_msgs"       // a count limit
	WeakMaxBytes   Weakness = "max_bytes"      // a size limit
	WeakPerChain   Weakness = "max_msgs_per_subject"
	WeakOneReplica Weakness = "one_replica"      // what the disk of one broker loses is lost
	WeakReplicas   Weakness = "replicas"         // fewer than asked for
	WeakRetention  Weakness = "retention"        // messages vanish when acknowledged or unwanted
	WeakSubjects   Weakness = "subjects"         // the stream does not take all of its subjects
	WeakSize       Weakness = "max_msg_size"     // events within the limit are refused
	WeakNoAck      Weakness = "no_ack"           // publishers get no acknowledgement
	WeakRollup     Weakness = "allow_rollup"     // a message can remove the ones before it
	WeakTTL        Weakness = "allow_msg_ttl"    // a publisher can make its own message expire
	WeakDirect     Weakness = "allow_direct"     // a replica that is late, or a mirror, may answer who reads a message: one that is there can look lost
	WeakWindow     Weakness = "duplicate_window" // a publisher can keep out others' messages by their Nats-Msg-Id for longer than need be
	FsyncUnknown   Weakness = "fsync_unknown"    // whether the broker syncs before its acknowledgements cannot be read
)
