// Package engine re-derives what a trust bundle claims from the evidence that
// the bundle itself packages. It holds what all domains share: records, the
// graph, claims and their grammars, retrieval, the serialization of an answer
// into the bytes that a bundle seals, the look-up of a domain, the procedure
// that re-executes a bundle (Rederive, Judge), and the chain domain, whose
// evidence is other bundles. The format is package bundle's; the procedure is
// that of the Tessera trust bundle format, sections 4 to 8 and 10.
//
// # Domains
//
// A domain turns a question, a graph and a knowledge base into an answer
// (Domain.Route) and knows the grammars of its claims (Domain.Grammars). It is
// found by its name, the engine version that it was sealed under, and the list
// of its claim shapes: all three must be equal, or the content is
// NOT-EVALUABLE, since another router or grammar would give another verdict
// under the same name. A domain is one room that exports a *Domain; package
// domains lists them, one line each.
//
// Everything a domain does must depend on its arguments alone: no clock, no
// randomness, no map order.
//
// # The answer in a bundle
//
// Decision is the `result` section; AppendDecision writes its one canonical
// form. Support of a claim is ordered by record id there, claims keep the
// order of the answer, the locator's `render` and `all_verified` are derived.
//
// Ask answers a new question from the evidence that a bundle packages, and
// drafts an action from the answer when the domain has one.
//
// # What is not checked here
//
// Truth in the world, how recent the evidence is, and who may be trusted. A
// verdict says that these claims follow, under this engine version, from the
// evidence in the same file.
package engine
