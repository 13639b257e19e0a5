// Package sha256 is the compression function of SHA-256 (FIPS 180-4, section
// 6.2.2), written for WebAssembly. It hashes nothing by itself: when the verifier
// is compiled for the browser, block_wasm.go takes the place of the file of that
// purpose in crypto/internal/fips140/sha256, and block_wasm.s stands beside it, so
// that crypto/sha256 stands as it is and only its innermost loop is another.
//
// Nearly every other processor has such a loop in Go's own tree; for WebAssembly
// Go compiles the general one, whose values of 32 bits live in memory and in
// variables of 64, and takes three times as long. There is nothing to branch on
// and nothing to look up in this one, so neither its time nor its places in memory
// depend on what is hashed.
//
// For other processors this package is empty. Its tests of crypto/sha256 run
// there, too; web/generate runs all of them, and Go's own, as WebAssembly.
package sha256
