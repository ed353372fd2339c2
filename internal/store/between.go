package store

import "context"

// Between runs fn on the writer's goroutine while no write is under way: the
// counters, and every snapshot taken by fn, are at the same revision, and no
// write comes before fn has returned. fn must not write.
func (s *Store) Between(ctx context.Context, fn func()) error {
	op := &operation{between: fn, done: make(chan struct{})}
	_, err := s.writer.enqueue(ctx, op)
	return err
}
