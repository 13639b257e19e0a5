package sha256

// block takes whole blocks of 64 bytes into the state.
//
//go:noescape
func block(dig *Digest, p []byte)
