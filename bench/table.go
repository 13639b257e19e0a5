package main

// rows is the table of what is to be reached.
func rows() []row {
	const rate = "events/s"
	transport := "JetStream alone: publish and consume at once, ack per batch"
	ingest := "publish → JetStream → decode → state → hash → commit → ack, all features on, "
	least := "the least that ingest must do, by a program that does nothing else: two SHA-256, a write to a plain file, fsync, ack, receipts; events of "
	return []row{
		{"ingest-64", ingest + "64 chains", transport, []goal{{bound: 0.90, unit: rate}}, openIngest(64)},
		{"ingest-1024", ingest + "1,024 chains", transport, []goal{{bound: 0.85, unit: rate}}, openIngest(1024)},
		{"ingest-100k", ingest + "100,000 open chains", transport, []goal{{bound: 0.85, unit: rate}}, openIngest(100_000)},
		{"ingest-1k", ingest + "64 chains, events of 1 KiB", transport, []goal{{bound: 0.90, unit: rate}}, ofSize(1<<10, openIngest(64))},
		{"ingest-16k", ingest + "64 chains, events of 16 KiB", transport, []goal{{bound: 0.90, unit: rate}}, ofSize(16<<10, openIngest(64))},
		{"ingest-large", ingest + "64 chains, beside the segments that -segments says", transport, []goal{{bound: 0.90, unit: rate}}, openIngestLarge(64)},
		{"least", least + "460 bytes", transport, []goal{{bound: 0.90, unit: rate}}, openLeast(64)},
		{"least-100k", least + "460 bytes, each of another one of 100,000 chains", transport, []goal{{bound: 0.85, unit: rate}}, openLeast(100_000)},
		{"least-1k", least + "1 KiB", transport, []goal{{bound: 0.90, unit: rate}}, ofSize(1<<10, openLeast(64))},
		{"least-16k", least + "16 KiB", transport, []goal{{bound: 0.90, unit: rate}}, ofSize(16<<10, openLeast(64))},
		{"drain", "drain of a stored backlog", "bare consume of the same stream", []goal{{bound: 0.80, unit: rate}}, openDrain},
		{"readers", "ingest beside 50 clients that list, read and verify, each twice a second", "the same without readers", []goal{{bound: 0.90, unit: rate}}, openReaders},
		latencyRow(100), latencyRow(1000),
		appendRow(1, 0.45), appendRow(64, 0.65), appendRow(1024, 0.60),
		{"append-sqlite", "durable append, 1,024 appenders", "SQLite, WAL, full sync, group commit", []goal{{bound: 2.5, unit: rate}}, openPeer("sqlite", 1024)},
		{"append-tessera", "durable append, 1,024 appenders", "Tessera on POSIX, batches of 1,024 or 5 ms", []goal{{bound: 5, unit: rate}}, openPeer("tessera", 1024)},
		{"walk", "full chain walk of decoded segments, one core", "SHA-256 of the same preimages", []goal{{bound: 0.45, unit: "segments/s"}}, openWalk},
		{"walk-two", "chaind verify of an evidence file on two cores", "on one core", []goal{{bound: 1.8, unit: "segments/s"}}, openWalkTwo},
		{"walk-memory", "chaind verify of a long evidence file, peak of its memory", "32 MiB", []goal{{bound: 1, most: true, unit: "MiB"}}, openVerifyMemory},
		{"seal", "seal of a run: bundle, pointer, history, and its record in the store", "create + fsync + rename + directory fsync of the same bytes", []goal{{bound: 2.5, most: true, unit: "s"}}, openSeal},
		{"seal-rate", "seals of runs, many at once", "1,000 a second", []goal{{bound: 1, unit: "seals/s"}}, openSealRate},
		{"verify", "verify a run bundle of 20,000 segments", "SHA-256 of its bytes", []goal{{bound: 0.05, unit: "B/s"}}, openVerify},
		{"verify-linear", "verify a run bundle of 20,000 segments, by the byte", "the same of 2,000 segments", []goal{{bound: 0.8, unit: "B/s"}}, openVerifyLinear},
		{"start", "open a store with many segments", "2 s, 200 MiB", []goal{{label: "time", bound: 1, most: true, unit: "s"}, {label: "memory", bound: 1, most: true, unit: "MiB"}}, openStart},
		{"written", "bytes to the disk for an event appended in batches of 4,000, and of the file it is in", "bytes of its payload",
			[]goal{{label: "written", bound: 3, most: true, unit: "B/event"}, {label: "file", bound: 1.5, most: true, unit: "B/event"}}, openWritten},
	}
}
