// Package run is the domain of trust bundles that seal one agent run.
package run
