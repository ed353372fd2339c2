package chatlog

import (
	"math"
	"strconv"
	"time"
)

// The numbers from which on a time is no longer counted in the unit before it.
// Seconds reach to the year 5138, milliseconds begin in 1973.
const (
	fromMillis = 1e11
	fromMicros = 1e14
	fromNanos  = 1e17
)

// readTime gives the UTC microseconds that v stands for, 0 if it is not there, and
// false if it cannot be read. Only the years 1 to 9999 can.
func readTime(v value) (int64, bool) {
	switch v.kind {
	case absent:
		return 0, true
	case other:
		return 0, false
	case aString:
		if v.text == "" {
			return 0, true
		}
		if t, err := time.Parse(time.RFC3339Nano, v.text); err == nil {
			return t.UnixMicro(), 1 <= t.UTC().Year() && t.UTC().Year() <= 9999
		}
	}
	if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
		return ofMagnitude(n)
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) >= math.MaxInt64 {
		return 0, false
	}
	if math.Abs(f) < fromMillis {
		// Fractions are usual in seconds; a float64 holds their microseconds until the
		// year 2255.
		return inYears(int64(math.Round(f * 1e6)))
	}
	if math.Abs(f) < fromMicros {
		return inYears(int64(math.Round(f * 1e3)))
	}
	return ofMagnitude(int64(f))
}

// ofMagnitude takes a whole number for seconds, milliseconds, microseconds or
// nanoseconds by its size.
func ofMagnitude(n int64) (int64, bool) {
	switch size := math.Abs(float64(n)); {
	case size < fromMillis:
		return inYears(n * 1e6)
	case size < fromMicros:
		return inYears(n * 1e3)
	case size < fromNanos:
		return inYears(n)
	}
	return inYears(n / 1e3)
}

// inYears refuses what no calendar shows. Only numbers can be that far away:
// negative seconds and milliseconds.
func inYears(us int64) (int64, bool) {
	year := time.UnixMicro(us).UTC().Year()
	return us, 1 <= year && year <= 9999
}
