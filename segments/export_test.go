package segments

import "io"

// ScanInBatches is [Scan] with batches of so many bytes.
func ScanInBatches(r io.Reader, workers, bytes int, visit func(*Scanned) error) (*Envelope, []Deviation, error) {
	return scan(r, newCrew(workers, bytes, visit))
}
