// Package store keeps evidence chains in one bbolt file: every accepted event
// once, in its chain, in stream order, together with everything that was
// rejected, late, repeated or lost.
package store
