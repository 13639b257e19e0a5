package sidecar

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
)

// Memory keeps blobs in memory; they end with the process.
type Memory struct {
	mu    sync.RWMutex
	blobs map[string][]byte // values are replaced, never changed
}

var _ Blobs = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{blobs: make(map[string][]byte)} }

// Put implements [Blobs].
func (m *Memory) Put(ctx context.Context, name string, body Body) error {
	b, err := render(ctx, name, body)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[name] = b
	return nil
}

// PutOnce implements [Blobs].
func (m *Memory) PutOnce(ctx context.Context, name string, body Body) error {
	b, err := render(ctx, name, body)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.blobs[name]; ok && !bytes.Equal(old, b) {
		return &ConflictError{Name: name}
	}
	m.blobs[name] = b
	return nil
}

func render(ctx context.Context, name string, body Body) ([]byte, error) {
	if err := check(ctx, name); err != nil {
		return nil, fmt.Errorf("write blob: %w", err)
	}
	var buf bytes.Buffer
	if err := body(&buf); err != nil {
		return nil, fmt.Errorf("write blob %q: %w", name, err)
	}
	return buf.Bytes(), nil
}

// Open implements [Blobs].
func (m *Memory) Open(ctx context.Context, name string) (io.ReadSeekCloser, error) {
	if err := check(ctx, name); err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	b, ok := m.blobs[name]
	if !ok {
		return nil, fmt.Errorf("open blob %q: %w", name, fs.ErrNotExist)
	}
	return struct {
		io.ReadSeeker
		io.Closer
	}{bytes.NewReader(b), io.NopCloser(nil)}, nil
}

// List implements [Blobs].
func (m *Memory) List(ctx context.Context, prefix string, visit func(name string) error) error {
	m.mu.RLock()
	var names []string
	for name := range m.blobs {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	m.mu.RUnlock()
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(name); err != nil {
			return err
		}
	}
	return nil
}

// Remove implements [Blobs].
func (m *Memory) Remove(ctx context.Context, name string) error {
	if err := check(ctx, name); err != nil {
		return fmt.Errorf("remove blob: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blobs[name]; !ok {
		return fmt.Errorf("remove blob %q: %w", name, fs.ErrNotExist)
	}
	delete(m.blobs, name)
	return nil
}

// check is what every operation of a back end begins with.
func check(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return CheckName(name)
}
