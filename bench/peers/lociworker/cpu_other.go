//go:build !unix

package lociworker

import (
	"errors"
	"time"
)

// processorTime is not known here.
func processorTime() (time.Duration, error) {
	return 0, errors.New("the comparison runs on Unix")
}
