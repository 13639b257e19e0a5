// Package openssh brings signing keys out of the two places where OpenSSH keeps
// them: private key files, with or without a passphrase, and a running agent.
// Only Ed25519 keys are taken.
//
// # Purpose of what is signed
//
// OpenSSH itself signs with the same key. What keeps its signatures and ours
// apart is the first bytes of the message: an SSH login signs a session
// identifier with a four-byte length in front, ssh-keygen -Y signs text that
// begins with "SSHSIG", evidence signs JSON that begins with
// {"chain_head":" (Plasm evidence format, section 10), and trust bundles sign
// text with a label of their own. None of them is a prefix of another. A signer
// of this package must be given nothing but such labelled messages; a bare
// digest is not one. Messages are limited to [MaxMessage] bytes, since agents
// drop the connection on long ones.
package openssh
