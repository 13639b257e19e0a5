package server

import (
	"net/http"

	"github.com/chaind/chaind/keys"
)

// keysDocument says whom the daemon signs as and whom it trusts.
type keysDocument struct {
	Signing *keyEntry  `json:"signing"` // null: nothing is signed
	Pinned  bool       `json:"pinned"`  // there is a trust list
	Trusted []keyEntry `json:"trusted"`
}

// keyEntry is a public key. Status is active, retired or revoked; of the
// signing key it is what the trust list says, "" when it is not in it.
type keyEntry struct {
	PublicKey string      `json:"public_key"`
	KeyID     string      `json:"key_id"`
	Status    keys.Status `json:"status"`
	Comment   string      `json:"comment"`
}

// keyList shows public keys and their states. Comments are the operator's notes
// (names, other tenants) and nothing that readers bound to tenants need.
func (s *server) keyList(w http.ResponseWriter, r *http.Request, a access) error {
	trust := s.Trust()
	d := keysDocument{Pinned: trust != nil, Trusted: []keyEntry{}}
	for _, e := range trust.Entries() {
		d.Trusted = append(d.Trusted, describeEntry(e))
	}
	if s.Signing != nil {
		if key := s.Signing(); key != nil {
			entry, known := trust.Lookup(*key)
			if !known {
				entry = keys.Entry{PublicKey: *key}
			}
			signing := describeEntry(entry)
			d.Signing = &signing
		}
	}
	if !a.all {
		d.withoutComments()
	}
	return s.writeJSON(w, r, d)
}

func (d *keysDocument) withoutComments() {
	for i := range d.Trusted {
		d.Trusted[i].Comment = ""
	}
	if d.Signing != nil {
		d.Signing.Comment = ""
	}
}

func describeEntry(e keys.Entry) keyEntry {
	return keyEntry{PublicKey: e.PublicKey.String(), KeyID: e.PublicKey.ID(), Status: e.Status, Comment: e.Comment}
}
