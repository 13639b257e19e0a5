package events

// Lint says what is wrong with a message before it is sent; nil: nothing that
// the message alone shows. Whether its id is taken, its scope is the chain's
// and an intent or run digest fits the chain's scope shows only in the chain.
func Lint(subject string, payload []byte, lim Limits) *Fault {
	return Decode(Message{Subject: subject, Payload: payload}, lim).Fault
}
