package export

// Limits of what is read and written.
const (
	// MaxFiles bounds the files that an export lists.
	MaxFiles = 100_000

	// MaxUnpacked bounds the bytes of all files of an export, or of a [Folder].
	// The sizes that manifest and archive state are added up before anything is
	// read, and no file gives more bytes than it states.
	MaxUnpacked = 8 << 30

	// MaxManifestBytes bounds manifest.json.
	MaxManifestBytes = 64 << 20

	// maxSignatureFile bounds manifest.sig, in bytes.
	maxSignatureFile = 4 << 10

	// maxMislisted is how many bytes a file that has not its listed size may have
	// and still be read, to say what it holds and what its verdict is. A larger one
	// is altered by its size alone.
	maxMislisted = 64 << 20

	// maxEntries bounds the entries of a ZIP file, directories included.
	maxEntries = 200_000

	// maxExtra bounds the extra fields of one header of a ZIP file, in bytes. Times,
	// owners and 64-bit sizes take less than half of it.
	maxExtra = 256

	// maxPath bounds a listed path, and what is shown of any other, in bytes.
	maxPath = 400

	// maxName bounds the name of anything in a [Folder], in bytes.
	maxName = 4096

	// maxListed bounds the findings of one code that a report lists.
	maxListed = 50
)
