package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/bench/peers/data"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/bench/peers/worker"
)

const (
	nearRound = 60   // neighbourhoods of a round
	pathRound = 20   // paths of a round
	nearLimit = 1000 // of a neighbourhood: more than nearly all have
)

// measureGraph has the products with relations answer questions of a graph.
func (r *runner) measureGraph(ctx context.Context) (err error) {
	l := &leg{runner: r, holds: holdsTexts, dir: filepath.Join(r.scratch, "graph"), set: &data.Set{}}
	for _, p := range r.products {
		if p.gone != "" || !p.hello.Graph {
			continue
		}
		c := &contender{product: p, dir: filepath.Join(l.dir, p.id), effort: map[string]chosen{}, slow: map[string]bool{}}
		c.opened = protocol.Open{Dir: c.dir, Analysis: "own", Texts: true, Capacity: 1000}
		l.all = append(l.all, c)
	}
	if len(l.all) == 0 {
		r.say("no graph: no product has one")
		return nil
	}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.end()) }()
	g, err := data.NewGraph(l.dir, r.seed)
	if err != nil {
		return err
	}
	l.set.Count = g.Entities
	r.say("a graph of %s entities and %s relations", count(g.Entities), count(g.Relations))
	for _, c := range l.all {
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			return err
		}
		row := l.row(result.TaskGraph, c)
		if _, err := l.open(ctx, c); err != nil {
			l.drop(c, err)
		} else if cost, err := call[protocol.Cost](ctx, r, c, protocol.OpGraph, protocol.Graph{Triples: g.Triples}); err != nil {
			row.Missing = l.failed(c, err)
		} else {
			row.Seconds, row.CPUSecs, row.Rate = cost.Wall, cost.CPU, float64(g.Relations)/cost.Wall
		}
		row.Missing = cmp.Or(row.Missing, c.gone)
		l.add(row)
	}
	for depth := 1; depth <= 2; depth++ {
		l.graphTask(ctx, result.TaskNear, fmt.Sprintf("depth %d", depth), nearRound, func(ctx context.Context, c *contender, pairs [][2]string) (protocol.Cost, float64, error) {
			ask := protocol.Near{Depth: depth, Limit: nearLimit}
			for _, p := range pairs {
				ask.Entities = append(ask.Entities, p[0])
			}
			names, err := call[protocol.Names](ctx, r, c, protocol.OpNear, ask)
			if err == nil && len(names.Names) != len(pairs) {
				err = &worker.Failure{Text: "not every neighbourhood was answered"}
			}
			if err != nil {
				return names.Cost, 0, err
			}
			right := 0.0
			for i, answer := range names.Names {
				right += g.NearShare(pairs[i][0], depth, nearLimit, answer)
			}
			return names.Cost, right, nil
		}, g)
	}
	l.graphTask(ctx, result.TaskPath, "", pathRound, func(ctx context.Context, c *contender, pairs [][2]string) (protocol.Cost, float64, error) {
		names, err := call[protocol.Names](ctx, r, c, protocol.OpPath, protocol.Path{Pairs: pairs})
		if err == nil && len(names.Names) != len(pairs) {
			err = &worker.Failure{Text: "not every path was answered"}
		}
		if err != nil {
			return names.Cost, 0, err
		}
		right := 0.0
		for i, answer := range names.Names {
			if g.IsShortest(pairs[i], answer) {
				right++
			}
		}
		return names.Cost, right, nil
	}, g)
	return ctx.Err()
}

// graphTask asks the same of all in turns. ask gives how many of its answers were
// right.
func (l *leg) graphTask(ctx context.Context, task, class string, n int, ask func(ctx context.Context, c *contender, pairs [][2]string) (protocol.Cost, float64, error), g *data.Graph) {
	l.say("%s %s", task, class)
	right := map[*contender]float64{}
	asked := map[*contender]int{}
	l.turns(ctx, l.all, figure{
		row: func(c *contender) result.Row {
			row := l.row(task, c)
			row.Class = class
			return row
		},
		warm: true, rounds: l.rounds,
		sample: func(ctx context.Context, c *contender, round int) (protocol.Cost, error) {
			pairs := g.Asks(l.seed, round, n)
			cost, ok, err := ask(ctx, c, pairs)
			if err == nil && len(cost.Times) > 0 {
				right[c] += ok
				asked[c] += len(pairs)
			}
			return cost, err
		},
		after: func(c *contender, row *result.Row) { row.Agreement = right[c] / float64(asked[c]) },
	})
}
