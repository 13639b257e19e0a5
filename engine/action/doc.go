// Package action drafts the requests that may follow from an answer, such as an
// issue about a failed run, and holds what a bundle records of one against what
// its answer yields. Nothing is ever sent from here: a receipt is that of a
// simulation, which a person may approve and send elsewhere.
//
// # From answer to receipt
//
// A Kind of action belongs to domains and to one kind of route. Draft turns the
// claims of a decision into fields: a title, when the kind finds one, and one
// field for each claim, whose role is that of the subject for the first and told
// by its first words for the others. A field is verified when its claim is and
// its value is the claim's text or is contained, normalized, in what the claim
// cites. Render makes the request of a proposal whose fields are all verified,
// and Simulate the receipt. Proposal, Payload and Receipt each have one canonical
// form, with the members that Tessera gives them; the receipt is the action
// section of a bundle.
//
// # Body
//
// A section is `## label`, a line feed, and the value; sections are joined by an
// empty line. Values of logs and code stand between fences of backticks, one
// longer than the longest run of backticks in the value, three at least.
//
// # Check
//
// A recorded receipt must be, byte for byte in canonical form, the one that the
// recorded answer yields; whatever is added or altered is a finding.
package action
