package server

import (
	"time"

	"github.com/chaind/chaind/store"
)

// Limits of one HTTP server. Every byte of a request is hostile.
const (
	maxHeaderBytes = 16 << 10 // request target and header fields
	maxReadBytes   = 64 << 10 // what the HTTP library reads of a header before it gives up
	maxQueryBytes  = 2 << 10  // raw query of a request
	maxTokenBytes  = 512      // bearer token as sent
	maxCursorBytes = 1 << 10  // page cursor as sent

	readHeaderTimeout = 10 * time.Second
	readTimeout       = 15 * time.Second // whole request; bodies are refused
	idleTimeout       = 60 * time.Second

	// writeStall is how long one chunk of an answer may take to leave. It
	// starts anew with every chunk: a large answer may take as long as it
	// progresses, a stalled reader may not hold its connection.
	writeStall = 15 * time.Second
	writeChunk = 32 << 10 // bytes

	verifyWait    = 5 * time.Second  // how long a request waits for a free verification
	verifyTimeout = 60 * time.Second // reading and verifying one file
	retryAfter    = 2                // seconds, told to callers that were turned away

	maxRunPages   = 5       // pages of chains looked through to explain a missing run
	maxAlternates = 32      // chains of one run that a trust bundle is chosen from
	maxOpenPacked = 20000   // segments of an open chain that is packed for one answer
	maxVerdicts   = 4096    // remembered verdicts
	maxHeld       = 1 << 30 // bytes of evidence held by answers on their way

	defaultPage = 50
	maxPage     = 200
	// maxTimelinePage bounds pages of segments and attempts, of which a chain
	// may have hundreds of thousands.
	maxTimelinePage = store.MaxPage
)
