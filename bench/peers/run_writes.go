package main

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/bench/peers/worker"
)

// writes measures what changes a store that is loaded: after all else, because the
// true answers are those of the records as they were loaded.
func (l *leg) writes(ctx context.Context) {
	n := l.set.Count
	if l.wants(doSingle, n) {
		l.say("single writes")
		l.change(ctx, result.TaskSingle, n+singleAt, singleRound, protocol.OpSingle, nil)
	}
	if l.wants(doVisible, n) {
		l.say("from a write to its being found")
		l.change(ctx, result.TaskVisible, n+visibleAt, visibleRound, protocol.OpVisible, nil)
	}
	if l.wants(doUpdate, n) {
		l.say("updates")
		l.change(ctx, result.TaskUpdate, 0, changeRound, protocol.OpUpdate, func(c *contender) string {
			return lacks(c.hello.Update, "records cannot be changed")
		})
	}
	if l.wants(doDelete, n) {
		l.say("deletions")
		l.change(ctx, result.TaskDelete, n/2, changeRound, protocol.OpDelete, func(c *contender) string {
			return lacks(c.hello.Delete, "records cannot be deleted")
		})
	}
	if l.wants(doMixed, n) {
		l.mixedWork(ctx)
	}
}

func lacks(has bool, why string) string {
	if has {
		return ""
	}
	return why
}

// change times an operation on records, a few of them in each round. missing, if
// any, says why a contender cannot be asked.
func (l *leg) change(ctx context.Context, task string, at, each int, op string, missing func(c *contender) string) {
	l.turns(ctx, l.all, figure{
		row: func(c *contender) result.Row { return l.row(task, c) }, warm: true, rounds: l.rounds,
		sample: func(ctx context.Context, c *contender, round int) (protocol.Cost, error) {
			if missing != nil && missing(c) != "" {
				return protocol.Cost{}, &worker.Unsupported{Why: missing(c)}
			}
			from := at + round*each
			var args any = l.records(from, from+each, 1)
			if op == protocol.OpVisible {
				args = protocol.Visible{Load: l.records(from, from+each, 1), Effort: c.effort[l.set.Filters[0].Name].effort}
			}
			cost, err := call[protocol.Cost](ctx, l.runner, c, op, args)
			if err == nil && len(cost.Times) != each {
				err = &worker.Failure{Text: fmt.Sprintf("%d operations gave %d times", each, len(cost.Times))}
			}
			return cost, err
		},
	})
}

const (
	mixedReaders = 2
	mixedParts   = 2 // the time of a product is parted, so that all have their turns
)

// mixedWork has readers search beside a writer.
func (l *leg) mixedWork(ctx context.Context) {
	l.say("readers beside a writer")
	seconds := l.mixed.Seconds() / mixedParts
	each := (l.set.Extra - mixedAt) / mixedParts
	writes := map[*contender]*tally{}
	early := map[*contender]bool{}
	kind := func(c *contender) string {
		switch {
		case l.holds == holdsVectors:
			return protocol.KindVector
		case l.holds == holdsBoth && c.hello.Hybrid:
			return protocol.KindHybrid
		}
		return protocol.KindText
	}
	l.turns(ctx, l.all, figure{
		row: func(c *contender) result.Row {
			row := l.row(result.TaskRead, c)
			row.Note = kind(c) + " search"
			return row
		},
		rounds: mixedParts,
		sample: func(ctx context.Context, c *contender, round int) (protocol.Cost, error) {
			from := l.set.Count + mixedAt + (round-1)*each
			read := protocol.Search{Kind: kind(c), K: topK, Effort: c.effort[l.set.Filters[0].Name].effort}
			switch read.Kind {
			case protocol.KindText:
				for i := range chunk {
					of := l.set.Texts[l.set.Classes[i%len(l.set.Classes)]]
					read.Queries = append(read.Queries, of[i%len(of)])
				}
			case protocol.KindVector:
				read.Queries, read.Vectors = l.vectorQueries(0, ""), l.set.Asked
			case protocol.KindHybrid:
				read.Queries, read.Vectors = l.hybridQueries(0, ""), l.set.Asked
			}
			cost, err := call[protocol.MixedCost](ctx, l.runner, c, protocol.OpMixed, protocol.Mixed{
				Write: l.records(from, from+each, 1), Read: read, Readers: mixedReaders, Seconds: seconds,
			})
			if err != nil {
				return protocol.Cost{}, err
			}
			if writes[c] == nil {
				writes[c] = &tally{}
			}
			writes[c].add(cost.Writes)
			early[c] = early[c] || len(cost.Writes.Times) == each
			return cost.Reads, nil
		},
		after: func(c *contender, row *result.Row) {
			// The processor worked for readers and the writer at once.
			row.CPU, row.CPUSecs = 0, writes[c].cpu
			row.Seconds = l.mixed.Seconds()
			row.Rate = float64(row.Samples) / row.Seconds
		},
	})
	for _, c := range l.all {
		row := l.row(result.TaskWrite, c)
		t := writes[c]
		switch {
		case row.Missing != "":
		case t == nil || len(t.times) == 0:
			row.Missing = "nothing was written while others read"
		default:
			t.fill(&row)
			row.CPU, row.Seconds = 0, l.mixed.Seconds()
			row.Rate = float64(row.Samples) / row.Seconds
			if early[c] {
				row.Note = "the writer had written all there was before the time was over"
			}
		}
		l.add(row)
	}
}
