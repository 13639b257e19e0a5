// Command peers makes entries durable with other stores, as the limit of rows of
// chaind's benchmarks. It is a module of its own, so that none of this is a
// dependency of the product.
//
//	peers sqlite|tessera directory
//
// Rounds come on standard input: number of appenders, number of entries, then
// each entry with its length in front, all lengths 4 bytes, big-endian. Each
// round is answered by one line: nanoseconds it took, nanoseconds of CPU.
package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// store makes an entry durable; several callers at once.
type store interface {
	append(entry []byte) error
	close() error
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers: error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want sqlite or tessera, and a directory")
	}
	open := map[string]func(string) (store, error){"sqlite": openSQLite, "tessera": openTessera}[args[0]]
	if open == nil {
		return fmt.Errorf("there is no peer %q", args[0])
	}
	s, err := open(args[1])
	if err != nil {
		return err
	}
	return errors.Join(serve(s, bufio.NewReader(os.Stdin)), s.close())
}

func serve(s store, in io.Reader) error {
	for {
		callers, entries, err := readRound(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		start, cpu := time.Now(), cpuTime()
		if err := appendAll(s, callers, entries); err != nil {
			return err
		}
		fmt.Println(time.Since(start).Nanoseconds(), (cpuTime() - cpu).Nanoseconds())
	}
}

const maxEntry = 8 << 20

func readRound(in io.Reader) (callers int, entries [][]byte, err error) {
	var head [2]uint32
	if err := binary.Read(in, binary.BigEndian, &head); err != nil {
		return 0, nil, err
	}
	for range head[1] {
		var n uint32
		if err := binary.Read(in, binary.BigEndian, &n); err != nil {
			return 0, nil, err
		}
		if n > maxEntry {
			return 0, nil, errors.New("entry is too large")
		}
		entry := make([]byte, n)
		if _, err := io.ReadFull(in, entry); err != nil {
			return 0, nil, err
		}
		entries = append(entries, entry)
	}
	return int(head[0]), entries, nil
}

func appendAll(s store, callers int, entries [][]byte) error {
	var next atomic.Int64
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for errs[c] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(entries) {
					return
				}
				errs[c] = s.append(entries[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
