package store

// WhyRestored is the reason of an epoch that begins because the database is a
// restored backup.
const WhyRestored = "restored"

// noteRestore begins a new epoch of each stream when the database lies there
// without its mark, as a backup does, or beside the mark of a later one (see life): what this store had applied and lost again
// cannot be told from what it never saw, so the history must show the seam. The
// new epochs go on where the backup ends. It comes before the mark is written:
// a crash in between notes the restore twice, never not at all.
func (s *Store) noteRestore() error {
	if !s.restored || len(s.epochs) == 0 {
		return nil
	}
	op := func(w *writer) error {
		for name := range s.epochs {
			old := w.current(name)
			w.epochs[name] = old
			if _, err := w.beginEpoch(old.Stream, old.Applied, WhyRestored); err != nil {
				return err
			}
		}
		return nil
	}
	s.cfg.Logger.Warn("the database is a restored backup: new epochs begin", "store", s.identity.id)
	r := &request{op: op, done: make(chan error, 1)}
	return s.transact([]*request{r})
}
