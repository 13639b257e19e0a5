// Package store keeps evidence chains in one bbolt file: every accepted event
// once, in its chain, in stream order, together with all that was rejected,
// late, repeated or lost. It is what the stream adds up to, and can be rebuilt
// from the stream.
//
// # Promises
//
// When [Store.Append] returns nil, the effects of the batch and the watermark of
// its stream are in one durable transaction; the caller may acknowledge. When it
// returns an error, the caller gives the same batch again, in this process or in
// the next one: an event is recognised by (chain, event id, payload digest), a
// rejected one by its place in the stream and its digest, never by a sequence
// number alone. Whatever is redelivered, repeated or replayed, an event is in its
// chain at most once, and nothing depends on where batches begin and end.
//
// Queries copy what they return and hold no transaction afterwards. Every value
// is checked against its own digest when it is read, since bbolt checks only its
// meta pages; a value that does not fit is a [CorruptError].
//
// # Files
//
// The directory holds chaind.db and store.id, after a failed sync store.unsynced, and during creation, growth and
// compaction a file whose name begins with "creating-". store.id is a line "chaind store
// {32 hex digits} has had {decimal} bytes": the identity and the least size of the
// database, so that a truncated or foreign one shows before it is mapped; and one
// "life {32 hex digits} has had {decimal} transactions", by which an older one shows. A
// backup is chaind.db alone: a database that lies there without its mark, or with that
// of a later life, is a restored one: all its pages are walked (without a mark, before
// it is mapped), since a torn copy may lead in circles, and its streams begin new
// epochs ("restored").
//
// # Layout, schema version 2
//
// Each table is a bucket at the root. A value is its payload followed by the
// XXH64 (seed 0; 8 bytes, big-endian) of: the table's tag (1 byte), the length of the
// key (4 bytes, big-endian), the key, the payload. Values of version 1 end with the
// first 8 bytes of SHA-256 of the same, and are read as they are. The checksum is
// against disks, memory and file systems that give back something else than they
// were given; it is none against somebody who writes to the file, who could compute
// any. That the segments are what they were is told by their digests, and by what is
// sealed over them. Numbers in keys are big-endian, 8
// bytes where nothing else is said. In payloads unsigned integers are uvarints,
// digests 32 bytes, strings carry their length, optional members a byte 0 or 1;
// the order of the members is that of the fields methods.
//
//	table         tag  key                              payload
//	meta          m    "identity" / "counters"          schema, id, time / last numbers given, tail
//	                   "settings", 0, arrival number    epoch, stream settings that weaken what arrives from then on
//	                   "aside", 0, chain number         why a chain is set aside, and the entries that its state lacks
//	                   "missed", 0, name, 0, why, no.   an event that a chain misses; why is "d", rejection, or "o", arrival
//	                   "late", 0, epoch, sequence       payload digest of what was taken where a loss had been recorded
//	                   "life"                           random name of this part of the file's history, and that before
//	journal       j    arrival number [, count less 1]  entry: what happened to which chain
//	preimages     p    arrival number                   texts that came with the entry, as kept
//	rejections    r    rejection ID                     the rejected message, class, digests
//	rejected_at   a    epoch (4), stream sequence       rejection ID (8)
//	chains        c    chain number                     key, standing, encoded events.State
//	chain_names   n    tenant 0 prompt 0 session 0 chain  chain number (8)
//	event_ids     i    chain number, 0 (1), event id    block of ids: id, digest, rejected before, arrival number
//	chain_lists   l    chain number, list (1), ordinal  arrival numbers from that ordinal on
//	runs          u    run id, 0, chain number          segment with its first seal
//	fixed         f    chain number                     the chain as of its end
//	seal_jobs     b    job ID                           chain number, attempts, last error
//	seal_results  s    chain number                     what the sealer wrote
//	epochs        e    epoch                            stream, base, applied
//	lost          x    lost range ID                    stream, epoch, range, reason
//
// An arrival number counts the entries of the journal from 1; it is the order in
// which events had their effect, over all chains. The journal has one entry for
// each event that concerns a chain: segments, attempts, seals, late events,
// duplicates and rejections. Redeliveries of what is durable leave no entry.
//
// A value of the journal is an entry, or a frame of up to 64 with consecutive
// arrival numbers: the key is then the number of the first, followed by one byte,
// how many follow it; the value is, for each entry, the length (uvarint) of what it
// would be alone, and that. Each entry in a frame so has its own checksum, over
// its own 8-byte arrival number. Version 1 had no frames; it is read as it is.
//
// A value of event_ids is a block of up to 32 ids of a chain in ascending order, under
// the first of them; an id is in the last block that begins at or before it, or in
// none. Version 1 had a value for each id, under chain number and id, which are read
// where no block has the id. That an event is new is seen from memory for a chain that
// began in this process, as long as the hashes of its ids have room there; for others
// from the table.
//
// # Now and then
//
// The journal is written with every event and in order, which bbolt does at the
// price of little more than the bytes themselves. What lies all over the file
// (chains, event_ids, chain_lists) is written now and then, for many entries of a
// chain at once: when it ends, when it has 256 entries that are in the journal
// only, or when its oldest such entry is 524,288 arrivals back. counters.tail names
// the oldest entry that counts. Opening the store reads the journal from there,
// and a state comes into memory, always, as the stored state with the entries
// behind it applied again, which must come to the same result. A chain for which that cannot be done, a value being
// damaged, is set aside, and the others go on.
//
// So a crash leaves either the transaction or nothing of it, and memory is
// never ahead of the file: it is changed after the commit, and thrown away when a
// commit fails. Where the outcome of a commit cannot be known (a failed fsync) the
// store refuses to write until it is opened again ([ErrBroken]), and notes it in a
// file store.unsynced, upon which opening it checks the database and writes it anew.
//
// # Compatibility
//
// A program opens one schema version, its own. A higher one is refused; a lower
// one is, too, until [Upgrade] has been asked for, which keeps a copy of the
// database as it was and then changes it in one transaction. A new table, or a new
// member at the end of a payload, is a new version. A name in meta that a program
// does not know it leaves alone: stores without settings, and what arrived before
// the first, have none that are known.
package store
