package main

import (
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite"
)

// sqlite keeps entries in one table, WAL with full sync. Whoever comes while a
// transaction runs shares the next one, as its best user would do.
type sqlite struct {
	db    *sql.DB
	mu    sync.Mutex
	queue []waiting
	token chan struct{}
}

type waiting struct {
	entry []byte
	done  chan error
}

func openSQLite(dir string) (store, error) {
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "peer.db")+"?"+pragmas.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE entry (id INTEGER PRIMARY KEY, body BLOB NOT NULL)"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &sqlite{db: db, token: make(chan struct{}, 1)}, nil
}

func (s *sqlite) append(entry []byte) error {
	w := waiting{entry, make(chan error, 1)}
	s.mu.Lock()
	s.queue = append(s.queue, w)
	s.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case s.token <- struct{}{}:
	}
	s.mu.Lock()
	group := s.queue
	s.queue = nil
	s.mu.Unlock()
	if len(group) > 0 {
		err := s.insert(group)
		for _, g := range group {
			g.done <- err
		}
	}
	<-s.token
	return <-w.done
}

func (s *sqlite) insert(group []waiting) error {
	tx, err := s.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	insert, err := tx.Prepare("INSERT INTO entry (body) VALUES (?)")
	if err != nil {
		return err
	}
	for _, w := range group {
		if _, err := insert.Exec(w.entry); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (s *sqlite) close() error { return s.db.Close() }
