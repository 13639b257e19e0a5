package main

import (
	"errors"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"
)

// damage DIR [journal]: changes one bit of a value that is in use, of the first chain
// in the database below DIR; or takes away the end of its journal.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	db, err := bbolt.Open(filepath.Join(ts.MkAbs(args[0]), "store", "chaind.db"), 0o600, nil)
	ts.Check(err)
	if len(args) > 1 { // the last entry of the journal, which nothing else tells of
		err = db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket([]byte("journal"))
			key, _ := b.Cursor().Last()
			return b.Delete(append([]byte(nil), key...))
		})
		ts.Check(errors.Join(err, db.Close()))
		return
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("chains"))
		key, value := b.Cursor().First()
		changed := append([]byte(nil), value...)
		changed[len(changed)/2] ^= 1
		return b.Put(append([]byte(nil), key...), changed)
	})
	ts.Check(errors.Join(err, db.Close()))
}
