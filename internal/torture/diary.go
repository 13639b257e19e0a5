package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
)

// A diary is what a producer wrote down, one JSON object a line. A killed
// producer may leave a torn last line.
type diary struct{ f *os.File }

// entry is one line.
type entry struct {
	Do      string `json:"do"`                // one of the constants below
	Chain   string `json:"chain"`             //
	Flavour string `json:"flavour,omitempty"` // with begin
	What    string `json:"what,omitempty"`    // of the event
	N       int    `json:"n,omitempty"`       // number of the event in its chain
	ID      string `json:"id,omitempty"`      // event id; "" when it has none
	Sum     string `json:"sum,omitempty"`     // SHA-256 of the payload; "": not known yet
	Seq     uint64 `json:"seq,omitempty"`     // stream sequence of the acknowledgement
	Number  uint64 `json:"number,omitempty"`  // producer_seq of an acknowledged event that the library published
	Kept    bool   `json:"kept,omitempty"`    // with resume: the library is told what was acknowledged last
	Outcome string `json:"outcome,omitempty"` // of a seal
	Head    string `json:"head,omitempty"`    // of an acknowledged seal: the chain's, as the producer computed it; "": it does not
}

// What a producer did.
const (
	doBegin   = "begin"   // a chain
	doResume  = "resume"  // a chain that a killed predecessor left
	doTry     = "try"     // is about to send
	doAck     = "ack"     // the broker acknowledged
	doDurable = "durable" // the daemon's receipt says that it is on disk
	doEnd     = "end"     // nothing more is sent to the chain
	doLeave   = "leave"   // the same, after an error
)

// What an event is.
const (
	whatEvent     = "event"     // new, well-formed
	whatSeal      = "seal"      // the chain's end
	whatDuplicate = "duplicate" // an earlier event's bytes again
	whatConflict  = "conflict"  // an earlier event's id with other bytes
	whatMalformed = "malformed"
	whatLate      = "late" // after the end
)

func openDiary(path string) (*diary, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString("\n") // ends what a kill may have torn
	return &diary{f}, err
}

// write is one system call, so that a kill leaves all of the line or a prefix.
func (d *diary) write(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = d.f.Write(append(line, '\n'))
	return err
}

// readDiary reads all whole lines.
func readDiary(path string) ([]entry, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []entry
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // torn by a kill; the next producer's lines follow on its own
		}
		all = append(all, e)
	}
	return all, lines.Err()
}
