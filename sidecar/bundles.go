package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chaind/chaind/segments"
)

// Bundle is a trust bundle to be kept.
type Bundle struct {
	Place Place
	Chain string          // name of the chain, 1 to 64 of [A-Za-z0-9_-]
	Root  segments.Digest // of the bundle
	Body  Body            // the bundle's bytes
	// Sound decides whether what stands under the root already is a bundle
	// with this root, whoever signed it. An error means that it could not be
	// told. It must read to the end of what it accepts.
	Sound func(r io.Reader) (bool, error)
	// Exact replaces whatever else stands under the root: the caller knows
	// these to be the first bytes.
	Exact bool
}

// BundlePath is the name of the trust bundle with a root.
func BundlePath(root segments.Digest) string { return "bundles/" + root.String() + ".tsb" }

// byChain is what the pointer and the history of a chain have in common.
func (b *Bundle) byChain() string {
	tenant := b.Place.Tenant
	if tenant == "" {
		tenant = "_"
	}
	return "bundles/by-chain/" + tenant + "/" + b.Place.PromptHash + "/" + b.Place.Session + "/" + b.Chain
}

func (b *Bundle) pointer() string { return b.byChain() + ".root" }
func (b *Bundle) entry() string   { return b.byChain() + "/" + b.Root.String() }

// names are the blobs that lead from the chain to the bundle.
func (b *Bundle) names() []Blob {
	return []Blob{{Name: b.entry(), Body: Bytes(nil)}, {Name: b.pointer(), Body: Bytes([]byte(b.Root.String()))}}
}

func (b *Bundle) validate() error {
	if b.Chain == "" || !isTenant(b.Chain) && b.Chain != "_" {
		return fmt.Errorf("%w: chain %q", ErrName, clip(b.Chain))
	}
	return b.Place.Validate()
}

// WriteBundle keeps a trust bundle under its root, then enters the root into
// the chain's history and gives it the chain's pointer (package comment,
// "Writing"). All of it is durable when WriteBundle returns nil; after an error
// the same call completes what is missing. Written.Standing is not filled in.
func (s *Sidecars) WriteBundle(ctx context.Context, b Bundle) (Written, error) {
	if err := b.validate(); err != nil {
		return Written{}, fmt.Errorf("write bundle: %w", err)
	}
	w, err := s.writeRoot(ctx, &b)
	if err != nil {
		return Written{}, fmt.Errorf("write bundle of root %s: %w", b.Root, err)
	}
	// A crash from here on leaves a bundle that no chain names yet: the seal
	// job, which is still there, comes here again.
	err = s.put(ctx, nil, b.names(), nil)
	if err != nil {
		return Written{}, fmt.Errorf("write pointer to bundle of root %s: %w", b.Root, err)
	}
	return w, nil
}

func (s *Sidecars) writeRoot(ctx context.Context, b *Bundle) (Written, error) {
	w := Written{Path: BundlePath(b.Root), Outcome: Stored}
	// No lock: a chain has one writer at a time, and whatever two would write
	// under one root is sound.
	ours := measure{body: b.Body}
	err := s.blobs.PutOnce(ctx, w.Path, ours.write)
	_, conflict := errors.AsType[*ConflictError](err)
	damaged := errors.Is(err, ErrNotRegular)
	if conflict {
		damaged, err = b.Exact, nil
		if !b.Exact {
			damaged, err = s.unsound(ctx, w.Path, b.Sound)
			w.Outcome = Kept
		}
	}
	if damaged {
		w.Outcome = Repaired
		err = s.blobs.Put(ctx, w.Path, ours.write)
	}
	if err != nil {
		return Written{}, err
	}
	return s.describe(ctx, w, &ours)
}

func (s *Sidecars) unsound(ctx context.Context, name string, sound func(io.Reader) (bool, error)) (bool, error) {
	r, err := s.blobs.Open(ctx, name)
	if replaceable(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer r.Close()
	src := &errorKeeper{r: r}
	ok, err := sound(src)
	return !ok, errors.Join(err, src.err)
}

// IntactBundle tells whether a trust bundle stands as it was written: the blob
// of its root has the given digest, the chain's history has the root, and its
// pointer names a root of the history. An error means that it could not be told.
// Body and Sound are not looked at.
func (s *Sidecars) IntactBundle(ctx context.Context, b Bundle, sum segments.Digest) (bool, error) {
	err := b.validate()
	ok := err == nil
	if ok {
		ok, err = s.hasSum(ctx, BundlePath(b.Root), sum)
	}
	if ok {
		ok, err = s.named(ctx, &b)
	}
	if err != nil {
		return false, fmt.Errorf("check bundle of root %s: %w", b.Root, err)
	}
	return ok, nil
}

// named tells whether history and pointer lead from the chain to the bundle.
func (s *Sidecars) named(ctx context.Context, b *Bundle) (bool, error) {
	root, err := s.readPointer(ctx, b.pointer())
	for _, name := range []string{b.entry(), b.byChain() + "/" + root.String()} {
		if err == nil {
			_, err = read(ctx, s.blobs, name, maxPointer)
		}
	}
	if replaceable(err) {
		return false, nil
	}
	return err == nil, err
}

// ReadBundle reads the trust bundle of a root. Nothing about it has been
// verified. The error wraps [ErrNotFound] when there is none.
func (s *Sidecars) ReadBundle(ctx context.Context, root segments.Digest) ([]byte, error) {
	b, err := read(ctx, s.blobs, BundlePath(root), MaxBundle)
	if err != nil {
		return nil, fmt.Errorf("read bundle of root %s: %w", root, absent(err))
	}
	return b, nil
}

// BundleRoots lists the roots of the trust bundles that a chain has had here,
// sorted, and the one that its pointer names, which was written last (nil:
// none). The list is empty for an unknown chain.
func (s *Sidecars) BundleRoots(ctx context.Context, p Place, chain string) (pointer *segments.Digest, roots []segments.Digest, err error) {
	b := Bundle{Place: p, Chain: chain}
	if err := b.validate(); err != nil {
		return nil, nil, fmt.Errorf("list bundles: %w", err)
	}
	err = s.blobs.List(ctx, b.byChain()+"/", func(name string) error {
		if root, err := segments.ParseDigest(strings.TrimPrefix(name, b.byChain()+"/")); err == nil {
			roots = append(roots, root)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list bundles: %w", err)
	}
	slices.SortFunc(roots, func(a, b segments.Digest) int { return bytes.Compare(a[:], b[:]) })
	root, err := s.readPointer(ctx, b.pointer())
	if replaceable(err) {
		return nil, roots, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list bundles: %w", err)
	}
	return &root, roots, nil
}
