// Package devex is the domain of pipeline runs and their logs, tickets, pull
// requests and the owners of services: it tells why a run failed, whether it
// failed so before and what fixed it, what a pull request changes and why, and
// who owns a service. It serves Tessera's domains devex and github_actions, whose
// evidence differs and whose rules do not. Routes and the wording of claims and
// refusals are those of Tessera, byte for byte, since a bundle seals all of it.
//
// # Evidence
//
// Nodes of kind Run (attributes `status`, `started`), Ticket, PR, and of kind
// document for pieces of logs and diffs; named nodes of kind Component, with
// attributes `alias`, and Owner. An edge `log_of` leads from a piece of a log to
// its run, `diff_of` from a piece of a diff to its pull request, `motivated_by`
// from a pull request to its ticket.
//
// # Routes
//
//	rca      a run is named: R- and three to five digits, or eight digits or more
//	summary  a pull request is named: PR- and three to five digits
//	service  the name or alias of a named node is in the question
//	lookup   anything else: BM25 over the knowledge base, five hits
//
// The domain has no claim shapes of its own: every claim quotes a record or names
// a fragment that its records share, which the engine's common grammars judge.
//
// # Bounds
//
// A chain of tickets, pull requests and diffs can have more claims than the
// evidence has records, so an answer of more than 2^16 claims, or one whose
// claims and what they cite come to more than 2^28 bytes, fails with ErrAnswerTooLong.
package devex
