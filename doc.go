// Package chaind is the front door of the module; it holds no code.
//
// chaind keeps evidence that an AI agent's run really happened as it is told,
// checkable by a stranger, offline. Data flows one way:
//
//	event → segment → chain → sidecar / bundle → verdict
//
// Where to look:
//
//   - segments: the evidence format: scopes, kinds, canonical bytes, digests,
//     chains, the evidence bundle, the head signature
//   - events: one event: its format, its strict decoding, why it is rejected,
//     and what it does to the state of its chain
//   - emitter: the NATS edge: Publisher for agent runtimes, intake, receipts
//   - store: chains in bbolt, one durable transaction per batch
//   - sidecar, sealer: evidence files, written once a chain has ended
//   - bundle, engine: trust bundles (.tsb) and how their claims are re-derived
//   - keys, verifier: whom to trust, and the ordered checks behind a verdict
//   - export: evidence, report and verifier in one folder, with a signed list
//   - server: HTTP, read only
//   - web: the console, and the page that verifies in a browser
//   - internal/daemon: configuration, wiring, start and stop order
//   - cmd/chaind: flags, text, exit codes
//
// The table of which room may import which is in rooms_test.go and is kept
// true by its test.
package chaind
