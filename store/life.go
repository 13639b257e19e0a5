package store

import "go.etcd.io/bbolt"

// life tells copies of one database apart, whatever their size. It has a random
// name in the database and in the mark beside it, and a new one begins with the
// first commit after the store is opened, after a backup has been taken, and after
// a compaction. So whatever is copied, the original gets another name with the
// first commit that the copy lacks; and a copy that is put beside the mark of the
// original is known for one: the mark has a name which it has not.
//
// It costs no commit of its own, since the name is written in one that is made
// anyway, and a write of the mark after that commit. A crash in between leaves a
// database with the new name beside a mark with the one before; so the database
// keeps both. Within one life the mark says, now and then and when the store is
// closed, how many transactions there have been at least: that tells a copy that
// something else has taken of a running store.
type life struct {
	now    string // 32 lower-case hex digits; "": nothing was committed since there are lives
	before string // the one that the mark had when this one began; "": none
}

var metaLife = []byte("life")

func (l *life) fields(c *codec) {
	text(c, &l.now)
	text(c, &l.before)
}

// renewLife begins a new life in the running transaction when one is due. As long
// as the mark has not been told of the last one it waits: else a crash could leave
// a mark with the name before the last.
func (w *writer) renewLife() error {
	s := w.s
	if s.unmarked() || !s.renew.Swap(false) {
		return nil
	}
	name, err := randomHex()
	if err != nil {
		return err
	}
	before := s.mark.life
	if before == "" {
		before = s.life.now
	}
	w.life = &life{now: name, before: before}
	return w.write(tableMeta, metaLife, w.life)
}

// unmarked: this process has committed a life that the mark does not have yet.
func (s *Store) unmarked() bool { return s.begun && s.mark.life != s.life.now }

// readLife reads the name, and judges whether the database is the one that the mark
// was written for, or a later one of it.
func (s *Store) readLife(v *view, tx *bbolt.Tx) error {
	if _, err := v.read(tableMeta, metaLife, &s.life); err != nil {
		return err
	}
	s.tx = uint64(tx.ID())
	switch m := s.mark; {
	case m.id == "":
		s.restored = true
	case m.life == "", m.life == s.life.before:
	default:
		s.restored = m.life != s.life.now || s.tx < m.tx
	}
	return nil
}
