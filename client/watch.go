package client

import (
	"context"
	"iter"
)

// longPoll is how long the server is asked to wait for a change, in milliseconds.
const longPoll = 30_000

// Watch gives what changes from in.After on, some at a time, and waits for more
// until the context ends or the caller stops. It asks again and again with Changes,
// whose errors end it. Only answers with something in them are given, and those
// whose FloorLost says that the caller has to read anew; the Next of an answer is
// where a later Watch goes on.
func (c *Client) Watch(ctx context.Context, in ChangesInput) iter.Seq2[*Changes, error] {
	return func(yield func(*Changes, error) bool) {
		if in.WaitMS == nil {
			in.WaitMS = new(int64(longPoll))
		}
		for {
			found, err := c.Changes(ctx, in)
			if err != nil {
				yield(nil, err)
				return
			}
			in.After = found.Next
			if (len(found.Items) > 0 || found.FloorLost) && !yield(found, nil) {
				return
			}
		}
	}
}
