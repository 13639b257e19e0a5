// Package business is the domain of customers, their sales orders and their
// agreements: it looks records up, adds orders up, compares two customers, finds
// the one with the highest total, and tells a conflict between agreements
// rather than choose a side. The routes, the wording of claims and refusals and
// the six grammars are those of Tessera's domain of the same name, byte for
// byte, since a bundle seals all of it.
//
// # Evidence
//
// Nodes of kind I_Customer and I_AddrOrgNamePostalAddress carry names, and
// resolutions make one entity of those that are the same. An edge `sold_to`
// leads from an order to its customer; the order's attributes `net_amount` and
// `currency` are what is added up. Nodes of kind document are the chunks of
// agreements, and mentions say of whom they speak.
//
// # Routes
//
//	multi   two entities or more are named: compare two; or a ranking is asked for
//	entity  one entity is named, or an ambiguous name is most of the question
//	lookup  anything else: BM25 over the knowledge base, five hits
//
// Amounts are decimal, never floating point; totals in different currencies are
// never added, compared or ranked. A sum that does not print in two places, and
// the claim that two totals are equal, do not verify: the grammars recompute the
// exact sum of everything cited. That is how the reference has it.
//
// # Bounds
//
// A question is compared with every name that has six characters in common with
// it, which takes the product of their lengths; beyond 2^30 steps, or with more
// than 2^20 characters, it fails with engine.ErrQuestionTooLong. All else is linear
// in the evidence but for sorting.
package business
