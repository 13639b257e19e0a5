package sidecar_test

import (
	"testing"

	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/sidecar/blobstest"
)

func TestBlobs(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		blobstest.Run(t, func(*testing.T) sidecar.Blobs { return sidecar.NewMemory() })
	})
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		blobstest.Run(t, func(t *testing.T) sidecar.Blobs {
			d, err := sidecar.OpenDir(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { d.Close() })
			return d
		})
	})
}
