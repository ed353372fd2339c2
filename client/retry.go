package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	firstPause = 100 * time.Millisecond
	longest    = 30 * time.Second
)

// backoff is how long to wait before the next try: twice as long each time, and by
// chance up to half less, so that those who failed together do not return together.
func backoff(try int) time.Duration {
	d := min(firstPause<<min(try, 10), longest)
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}

// pause is how long a server wants to be left alone, below 0 when asking again
// would give the same.
func pause(resp *http.Response) time.Duration {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
	default:
		return -1
	}
	after := resp.Header.Get("Retry-After")
	if n, err := strconv.ParseInt(after, 10, 32); err == nil {
		return min(max(0, time.Duration(n)*time.Second), longest)
	}
	if at, err := http.ParseTime(after); err == nil {
		return min(max(0, time.Until(at)), longest)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
