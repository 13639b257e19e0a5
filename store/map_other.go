//go:build !unix

package store

import "os"

// canMap: Windows makes the file as large as what is mapped.
func canMap(*os.File, int64) bool { return false }
