package daemon

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// stage is a set of goroutines that stop together. The daemon stops its stages
// one after the other, in the order in which data flows, so that each sees all
// that the one before it produced.
type stage struct {
	ctx    context.Context
	cancel context.CancelFunc
	group  errgroup.Group
	fail   func(error)
}

// newStage makes a stage whose context is its own: a stop signal must not reach
// it before its turn. fail is told of the first goroutine that ends unasked.
func newStage(fail func(error)) *stage {
	ctx, cancel := context.WithCancel(context.Background())
	return &stage{ctx: ctx, cancel: cancel, fail: fail}
}

// start runs a part until the stage is stopped. A part that ends before that,
// with or without an error, ends the daemon.
func (s *stage) start(name string, run func(context.Context) error) {
	s.group.Go(func() error {
		err := run(s.ctx)
		switch {
		case s.ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
			return nil
		case err == nil:
			err = errors.New("ended unasked")
		}
		err = fmt.Errorf("%s: %w", name, err)
		s.fail(err)
		return err
	})
}

// stop ends the stage and waits for its goroutines.
func (s *stage) stop() error {
	s.cancel()
	return s.group.Wait()
}
