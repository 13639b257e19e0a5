package verifier

const (
	// maxFindings is how many findings of one code a report lists; the rest
	// is counted.
	maxFindings = 10

	// maxSeals is how many run seals a report lists; the rest is counted.
	maxSeals = 100

	// maxStrays and maxStrayBytes bound what is remembered of executed steps
	// that no plan before them lists. An honest chain has none.
	maxStrays     = 1 << 16
	maxStrayBytes = 4 << 20

	// maxAhead is how many bytes of a file, read ahead of the segments that were
	// looked at, are kept to be compared with what an emitter writes; a file that
	// has more there counts as one with other bytes. An honest one has less than
	// a mebibyte.
	maxAhead = 32 << 20

	// maxQuoted is how many bytes of a text from the file enter a report.
	maxQuoted = 200

	// maxSentence is how many bytes a sentence with such texts may have.
	maxSentence = 1000

	// progressEvery is the number of segments between two progress calls.
	progressEvery = 4096

	// detectBytes is how far [Detect] looks into a file.
	detectBytes = 64 << 10
)
