package daemon

import (
	"fmt"

	"github.com/chaind/chaind/server"
)

const (
	// A disk is nearly full when fewer bytes are free than the smaller of these.
	diskFloor    = 256 << 20 // bytes
	diskFraction = 20        // one part in so many
)

// disk is what a file system says of itself.
type disk struct{ free, total uint64 } // bytes

func (d disk) nearlyFull() bool { return d.free < min(diskFloor, d.total/diskFraction) }

// disks looks at the file systems of both directories. What cannot be asked is
// left out: it is no news about the disk.
func (d *Daemon) disks() map[string]disk {
	found := map[string]disk{}
	for name, dir := range map[string]string{"data": d.cfg.DataDir, "artifacts": d.cfg.ArtifactsDir} {
		if dir == "" {
			continue // evidence is not kept in files
		}
		if free, err := d.cfg.statDisk(dir); err == nil {
			found[name] = free
		}
	}
	return found
}

// diskCauses go away by themselves when there is room again.
func (d *Daemon) diskCauses() []server.Cause {
	found := d.disks()
	var causes []server.Cause
	for _, name := range []string{"data", "artifacts"} {
		if disk, ok := found[name]; ok && disk.nearlyFull() {
			causes = append(causes, server.Cause{Name: server.CauseDisk,
				Detail: fmt.Sprintf("%d of %d bytes are free for the %s directory", disk.free, disk.total, name)})
		}
	}
	return causes
}
