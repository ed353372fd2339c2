package main

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/bench/peers/worker"
)

const micro = 1e6 // microseconds a second

// A tally sums what requests took.
type tally struct {
	times     []float64 // seconds, one a call
	wall, cpu float64
}

func (t *tally) add(c protocol.Cost) {
	t.times = append(t.times, c.Times...)
	t.wall += c.Wall
	t.cpu += c.CPU
}

// fill writes what was sampled into a row.
func (t *tally) fill(row *result.Row) {
	slices.Sort(t.times)
	row.Samples = len(t.times)
	row.P50 = percentile(t.times, 0.50) * micro
	row.P95 = percentile(t.times, 0.95) * micro
	row.P99 = percentile(t.times, 0.99) * micro
	row.CPU = t.cpu / float64(max(len(t.times), 1)) * micro
}

// percentile gives the smallest sample that is not exceeded by at least share p of
// them (nearest rank), as Loci's own benchmark does. The samples ascend.
func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// turn gives the order of a round: whoever was first is last in the next.
func turn[T any](all []T, round int) []T {
	if len(all) == 0 {
		return nil
	}
	n := round % len(all)
	return slices.Concat(all[n:], all[:n])
}

// A figure is what turns measures: rows that are alike but for the product.
type figure struct {
	row    func(c *contender) result.Row
	warm   bool // a first round, number 0, does not count
	rounds int  // that count, numbered from 1
	sample func(ctx context.Context, c *contender, round int) (protocol.Cost, error)
	// after, if any, adds what else is known to a row that has figures.
	after func(c *contender, row *result.Row)
}

// turns has all contenders do their parts of a figure in turns, and adds a row for
// each. A contender that has no such thing, or fails at it, gets a row that says so;
// one whose process is gone is out of the leg.
func (l *leg) turns(ctx context.Context, who []*contender, f figure) {
	tallies := map[*contender]*tally{}
	missing := map[*contender]string{}
	for _, c := range who {
		tallies[c] = &tally{}
	}
	first := 1
	if f.warm {
		first = 0
	}
	for round := first; round <= f.rounds; round++ {
		for _, c := range turn(who, round) {
			if c.gone != "" || missing[c] != "" || ctx.Err() != nil {
				continue
			}
			cost, err := f.sample(ctx, c, round)
			switch {
			case err != nil:
				missing[c] = l.failed(c, err)
			case round > 0:
				tallies[c].add(cost)
			}
		}
	}
	for _, c := range who {
		row := f.row(c)
		switch {
		case missing[c] != "":
			row.Missing = missing[c]
		case row.Missing != "":
		case len(tallies[c].times) == 0:
			row.Missing = "it measured nothing"
		default:
			tallies[c].fill(&row)
			if f.after != nil {
				f.after(c, &row)
			}
		}
		l.add(row)
	}
}

// failed tells why a contender has no figure. It is out of the leg unless it said by
// itself what was wrong.
func (l *leg) failed(c *contender, err error) string {
	var (
		unsupported *worker.Unsupported
		failure     *worker.Failure
	)
	switch {
	case errors.As(err, &unsupported):
	case errors.As(err, &failure):
		l.say("%s: %v", c.hello.Name, err)
	default:
		l.drop(c, err)
	}
	return reason(err)
}
