// Package sha256 is the compression function of SHA-256 (FIPS 180-4, section
// 6.2.2), written for WebAssembly. It hashes nothing by itself: when the verifier
// is compiled for the browser, block.go takes the place of the file of that
// purpose in crypto/internal/fips140/sha256, so that crypto/sha256 stands as it is
// and only its innermost loop is another. Everywhere else Go has instructions of
// the processor to use; for WebAssembly it has a loop whose every turn costs a
// jump through a table. Sixteen rounds a turn halve the time.
//
// Here the function is compiled only to be held against crypto/sha256.
package sha256

// Digest is what block.go needs of the type of that name that it meets there.
type Digest struct{ h [8]uint32 }
