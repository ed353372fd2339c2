package main

import (
	"context"
	"fmt"
	"time"

	"github.com/loci-memory/loci/bench/peers/data"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
)

// withStart is the class of rows of opening that count from the start of the
// process: the language and its libraries are in it.
const withStart = "with start"

// reopen closes every store, and opens each in a new process until it answers. The
// files may be in the system's cache.
func (l *leg) reopen(ctx context.Context) {
	l.say("closing, and opening until the first answer")
	disk := map[*contender]int64{}
	whole := map[*contender]*tally{}
	for _, c := range l.all {
		whole[c] = &tally{}
		if c.gone != "" {
			continue
		}
		if err := l.shut(ctx, c); err != nil {
			l.drop(c, err)
			continue
		}
		n, err := folderBytes(c.dir)
		if err != nil {
			l.drop(c, err)
			continue
		}
		disk[c] = n
	}
	if l.wants(doDisk, l.set.Count) {
		for _, c := range l.all {
			row := l.row(result.TaskDisk, c)
			row.Bytes = disk[c]
			l.add(row)
		}
	}
	opened := figure{
		row: func(c *contender) result.Row { return l.row(result.TaskOpen, c) }, warm: true, rounds: l.rounds,
		sample: func(ctx context.Context, c *contender, round int) (protocol.Cost, error) {
			if round > 0 {
				if err := l.shut(ctx, c); err != nil {
					return protocol.Cost{}, err
				}
			}
			cost, all, err := l.firstAnswer(ctx, c)
			if round > 0 {
				whole[c].add(protocol.Cost{Times: []float64{all}, Wall: all})
			}
			return cost, err
		},
	}
	if !l.wants(doOpen, l.set.Count) {
		opened.rounds = 0 // memory is that of a process that did not load
	}
	rows := len(l.file.Rows)
	l.turns(ctx, l.all, opened)
	if opened.rounds == 0 {
		l.file.Rows = l.file.Rows[:rows]
	} else {
		for _, c := range l.all {
			row := l.row(result.TaskOpen, c)
			row.Class = withStart
			switch {
			case row.Missing != "":
			case len(whole[c].times) == 0:
				row.Missing = "it was not opened"
			default:
				whole[c].fill(&row)
			}
			l.add(row)
		}
	}
	if l.wants(doMemory, l.set.Count) {
		l.memory(ctx)
	}
}

func (l *leg) shut(ctx context.Context, c *contender) error {
	limited, cancel := l.limited(ctx)
	defer cancel()
	_, err := c.w.Close(limited)
	return err
}

// firstAnswer opens a store in a new process and asks it one thing. It gives what
// opening and asking took as one call, and the seconds since the process started.
func (l *leg) firstAnswer(ctx context.Context, c *contender) (protocol.Cost, float64, error) {
	cost, err := l.open(ctx, c)
	if err != nil {
		return cost, 0, err
	}
	found, err := l.find(ctx, c, l.askings()[0], l.askings()[0].queries(0)[:1])
	if err != nil {
		return cost, 0, err
	}
	wall := cost.Wall + found.Wall
	return protocol.Cost{Times: []float64{wall}, Wall: wall, CPU: cost.CPU + found.CPU}, time.Since(c.w.Started()).Seconds(), nil
}

// askings gives every search of the leg. The first is that which a store that was
// opened is asked: text where there is any, five terms of all frequencies.
func (l *leg) askings() []asking {
	var out []asking
	for _, f := range l.set.Filters {
		if l.texts() {
			for _, class := range []string{"five terms, mixed", "one frequent term", "English question", "Chinese question"} {
				out = append(out, asking{kind: protocol.KindText, filter: f, queries: func(round int) []protocol.Query { return tagged(l.textQueries(class, round), f.Tag) }})
			}
		}
		if l.vectors() {
			out = append(out, asking{kind: protocol.KindVector, filter: f, queries: func(round int) []protocol.Query { return l.vectorQueries(round, f.Tag) }})
		}
		if l.holds == holdsBoth {
			out = append(out, asking{kind: protocol.KindHybrid, filter: f, queries: func(round int) []protocol.Query { return l.hybridQueries(round, f.Tag) }})
		}
	}
	return out
}

// memory tells what a process holds that has opened its store and answered a round
// of every search that it knows.
func (l *leg) memory(ctx context.Context) {
	l.say("memory")
	for _, c := range l.all {
		row := l.row(result.TaskMemory, c)
		if row.Missing == "" {
			m, err := l.memoryOf(ctx, c)
			if err != nil {
				row.Missing = l.failed(c, err)
			}
			row.Bytes, row.Anonymous, row.Idle = m.Resident, m.Anonymous, m.Idle
		}
		l.add(row)
	}
}

func (l *leg) memoryOf(ctx context.Context, c *contender) (protocol.Memory, error) {
	for _, a := range l.askings() {
		if a.filter.Tag != "" && !c.hello.Filter || a.kind == protocol.KindHybrid && !c.hello.Hybrid {
			continue
		}
		if _, _, err := l.warmUp(ctx, c, a, a.queries(0)); err != nil {
			return protocol.Memory{}, fmt.Errorf("%s, %s: %w", a.kind, filterName(a.filter), err)
		}
	}
	return call[protocol.Memory](ctx, l.runner, c, protocol.OpMemory, nil)
}

// measureReal searches in vectors that are no generated ones.
func (r *runner) measureReal(ctx context.Context) error {
	if r.shared == "" {
		r.say("no real vectors: no folder of them was named (--shared)")
		return nil
	}
	for _, name := range data.RealNames() {
		set, err := data.Real(ctx, r.data, r.shared, name)
		if err != nil {
			return err
		}
		if set == nil {
			r.say("no real vectors of %s: they are not in %s", name, r.shared)
			continue
		}
		l := &leg{runner: r, holds: holdsVectors, set: set}
		if err := l.run(ctx); err != nil {
			return err
		}
		if err := r.keep(); err != nil {
			return err
		}
	}
	return nil
}
