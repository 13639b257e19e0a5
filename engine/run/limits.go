package run

// Constants of the domain. They are part of its specification: another value
// gives other claims under the same name, and so needs another [Version].
const (
	maxRejected   = 100     // rejected events that are nodes; the rest is counted and digested
	maxListed     = 20      // names in a list inside a claim
	maxQuoted     = 80      // code points of a quoted text inside a claim or a node's text
	maxRestIDs    = 1 << 16 // distinct event ids counted among the rejected events that are no nodes
	maxRestRanges = 1024    // ranges of producer numbers kept of them
)
