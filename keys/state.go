package keys

// State is what is known about the signature of a document.
type State string

const (
	StateUnsigned  State = "UNSIGNED"        // there is no signature
	StateUnpinned  State = "SIGNED-UNPINNED" // valid, but nobody said whom to trust
	StateTrusted   State = "TRUSTED"         // valid, by an active key of the list
	StateRetired   State = "RETIRED"         // valid, by a retired key of the list
	StateRevoked   State = "REVOKED"         // valid, by a revoked key of the list
	StateUntrusted State = "UNTRUSTED"       // valid, by a key that is not listed
	StateInvalid   State = "INVALID"         // there is a signature and it does not hold
)

// Checked is a signature that was checked against the document that holds it.
type Checked struct {
	Key   PublicKey // whom the signature names; zero when that is not even a key
	Valid bool
}

// Judge gives the state of a signature; nil stands for a missing one. An
// invalid signature shows nothing about its signer, so that the list is not
// consulted for it.
func Judge(signature *Checked, list *TrustList) State {
	switch {
	case signature == nil:
		return StateUnsigned
	case !signature.Valid:
		return StateInvalid
	case list == nil:
		return StateUnpinned
	}
	entry, found := list.Lookup(signature.Key)
	if !found {
		return StateUntrusted
	}
	return map[Status]State{Active: StateTrusted, Retired: StateRetired, Revoked: StateRevoked}[entry.Status]
}

// Refused reports whether a document in this state fails as an envelope (exit
// code 4). An invalid, revoked or untrusted signature always does; a missing
// one when a list is pinned, unless allowUnsigned forgives exactly that.
func (s State) Refused(pinned, allowUnsigned bool) bool {
	switch s {
	case StateUnpinned, StateTrusted, StateRetired:
		return false
	case StateUnsigned:
		return pinned && !allowUnsigned
	}
	return true
}
