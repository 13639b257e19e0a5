package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chaind/chaind/keys"
	"github.com/chaind/chaind/segments"
	"github.com/chaind/chaind/sidecar"
	"github.com/chaind/chaind/verifier"
)

// demoClaims is how many claims of the trust bundle the demo shows.
const demoClaims = 4

// showBundle verifies the trust bundle that was sealed with the evidence, shows
// its first claims, and verifies it again after a change of one digit.
func showBundle(ctx context.Context, a *app, artifacts, root string, trust *keys.TrustList) error {
	digest, err := segments.ParseDigest(root)
	if err != nil {
		return fmt.Errorf("the receipt names no trust bundle: %w", err)
	}
	path := filepath.Join(artifacts, filepath.FromSlash(sidecar.BundlePath(digest)))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := a.printf("8 bundle    %s,\n  every claim derived again from the evidence inside:\n", path); err != nil {
		return err
	}
	r, err := showBundleVerdict(ctx, a, text, trust)
	if err != nil {
		return err
	}
	if r.ExitCode != exitOK {
		return fmt.Errorf("the trust bundle does not verify: exit %d", r.ExitCode)
	}
	for i, c := range r.Content.Claims {
		if i == demoClaims {
			break
		}
		if err := a.printf("  [%s] %s\n", c.Verdict, cut(c.Text, 100)); err != nil {
			return err
		}
	}
	if err := a.printf("  and %d more; chaind explain shows all, with what they rest on\n", max(0, len(r.Content.Claims)-demoClaims)); err != nil {
		return err
	}
	return tamperBundle(ctx, a, text, trust)
}

func tamperBundle(ctx context.Context, a *app, text []byte, trust *keys.TrustList) error {
	before, after := []byte("Revert #4127"), []byte("Revert #4128")
	at := bytes.Index(text, before)
	if at < 0 {
		return errors.New("the trust bundle does not show the last step")
	}
	forged := bytes.Clone(text)
	copy(forged[at:], after)
	if err := a.printf("9 tampered  byte %d of it changed: %q is now %q:\n", at+len(before)-1, before, after); err != nil {
		return err
	}
	r, err := showBundleVerdict(ctx, a, forged, trust)
	if err == nil && r.ExitCode != exitEnvelope {
		err = fmt.Errorf("the forged trust bundle gave exit %d, not %d", r.ExitCode, exitEnvelope)
	}
	return err
}

func showBundleVerdict(ctx context.Context, a *app, text []byte, trust *keys.TrustList) (*verifier.Report, error) {
	report := verifier.TrustBundle(ctx, bytes.NewReader(text), verifier.Options{Trust: trust})
	var out strings.Builder
	writeVerdict(&out, verified{"run.tsb", report}, colours(a.stdout))
	for line := range strings.Lines(out.String()) {
		if err := a.printf("  %s", line); err != nil {
			return nil, err
		}
	}
	return report, nil
}
