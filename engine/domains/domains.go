// Package domains lists the domains that this program can re-derive. A new
// domain is one room that exports its *engine.Domain, and one line here. Package run has two
// versions of its own: what is sealed now, and what was sealed before.
//
// # Tessera's domains
//
// business, devex and github_actions answer as the reference does under its
// engine version, engine.ReferenceVersion, and the same under a version of our
// own, which marks what this program wrote. A file of either is re-derived; one
// of any other version is NOT-EVALUABLE. Where the reference is loose, ours is
// not, and never gives the better verdict but in the third of these:
//
//   - An action section is compared in canonical bytes: members that do not belong
//     there, altered summaries and rendered locators, and 1 for true are findings.
//     A section that is no object is one too.
//   - An amount is a finite number of at most decimal.MaxDigits places on either
//     side of the point; NaN and Infinity fail the evaluation.
//   - A claim that needs more of the graph than it cites, a ranking or a comparison
//     of customers, is not judged when what it needs is withheld. The reference
//     calls such an honest redaction a failure.
//   - An action that belongs to another domain is an unknown action here.
//   - Questions, answers and amounts have bounds, which the packages state; beyond
//     them the evaluation fails.
//
// Both depend on the Unicode version for characters that were assigned lately.
package domains

import (
	"github.com/chaind/chaind/engine"
	"github.com/chaind/chaind/engine/business"
	"github.com/chaind/chaind/engine/devex"
	"github.com/chaind/chaind/engine/run"
)

// All returns every domain, with every engine version that is known of it.
func All() engine.Registry {
	all := engine.Registry{engine.Chain(engine.ChainVersion), engine.Chain(engine.ReferenceVersion)}
	all = append(all, run.Domains()...)
	return append(all,
		business.New(business.Version),
		business.New(engine.ReferenceVersion),
		devex.New(devex.Name, devex.Version),
		devex.New(devex.Name, engine.ReferenceVersion),
		devex.New(devex.GitHubActions, devex.Version),
		devex.New(devex.GitHubActions, engine.ReferenceVersion),
	)
}
