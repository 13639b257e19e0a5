// Package domains lists the domains that this program can re-derive. A new
// domain is one room that exports its *engine.Domain, and one line here.
package domains

import "github.com/chaind/chaind/engine"

// All returns every domain, with every engine version that is known of it.
func All() engine.Registry {
	return engine.Registry{
		engine.Chain(engine.ChainVersion),
		engine.Chain(engine.ReferenceVersion),
	}
}
