// Package domains lists the domains that this program can re-derive. A new
// domain is one room that exports its *engine.Domain, and one line here.
package domains

import (
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/run"
)

// All returns every domain, with every engine version that is known of it.
func All() engine.Registry {
	return engine.Registry{
		engine.Chain(engine.ChainVersion),
		engine.Chain(engine.ReferenceVersion),
		run.Domain(),
		business.New(business.Version),
		business.New(engine.ReferenceVersion),
		devex.New(devex.Name, devex.Version),
		devex.New(devex.Name, engine.ReferenceVersion),
		devex.New(devex.GitHubActions, devex.Version),
		devex.New(devex.GitHubActions, engine.ReferenceVersion),
	}
}
