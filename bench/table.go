package main

// rows is the table of what is to be reached.
func rows() []row {
	const rate = "events/s"
	transport := "JetStream alone: publish and consume at once, ack per batch"
	ingest := "publish → JetStream → decode → state → hash → commit → ack, all features on, "
	return []row{
		{"ingest-64", ingest + "64 chains", transport, []goal{{bound: 0.90, unit: rate}}, openIngest(64)},
		{"ingest-1024", ingest + "1,024 chains", transport, []goal{{bound: 0.85, unit: rate}}, openIngest(1024)},
		{"ingest-100k", ingest + "100,000 open chains", transport, []goal{{bound: 0.85, unit: rate}}, openIngest(100_000)},
		{"drain", "drain of a stored backlog", "bare consume of the same stream", []goal{{bound: 0.80, unit: rate}}, openDrain},
	}
}
