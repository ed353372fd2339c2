package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/bench/peers/data"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/bench/peers/worker"
)

const (
	topK         = data.Neighbours
	wantedRecall = 0.99

	chunk       = 60    // queries of a round
	probes      = 3     // queries that tell if a product is slow
	slowSeconds = 0.050 // a query
	slowSamples = 20    // in all rounds, for products that are slow

	recallQueries     = 200 // that tell the recall
	slowRecallQueries = 20  // of products that are slow
)

// noFilter is the reason that rows under a filter give for products without.
const noFilter = "no filters in a search"

// asking is a kind of search under one filter.
type asking struct {
	kind   string
	filter data.Filter
	// queries gives those of a round, numbered from 0.
	queries func(round int) []protocol.Query
	row     func(c *contender) result.Row
	after   func(c *contender, row *result.Row)
}

// searchTexts asks each class of queries under each filter.
func (l *leg) searchTexts(ctx context.Context) {
	if l.holds != holdsTexts {
		return
	}
	for _, class := range l.set.Classes {
		l.say("text, %s", class)
		for _, f := range l.set.Filters {
			l.search(ctx, l.all, asking{
				kind: protocol.KindText, filter: f,
				queries: func(round int) []protocol.Query { return tagged(l.textQueries(class, round), f.Tag) },
				row: func(c *contender) result.Row {
					row := l.searchRow(result.TaskText, f, c)
					row.Class = class
					return row
				},
			})
		}
	}
}

// searchVectors times vectors at the smallest effort that finds enough of the true
// nearest.
func (l *leg) searchVectors(ctx context.Context) {
	if l.holds != holdsVectors {
		return
	}
	for _, f := range l.set.Filters {
		l.say("vectors, %s: looking for the effort", filterName(f))
		who := l.choose(ctx, result.TaskVector, f)
		l.say("vectors, %s", filterName(f))
		l.search(ctx, who, asking{
			kind: protocol.KindVector, filter: f,
			queries: func(round int) []protocol.Query { return l.vectorQueries(round, f.Tag) },
			row:     func(c *contender) result.Row { return l.searchRow(result.TaskVector, f, c) },
			after: func(c *contender, row *result.Row) {
				row.Recall, row.Effort = c.effort[f.Name].recall, c.effort[f.Name].effort
			},
		})
	}
}

// searchHybrid asks for text and vectors at once, with the effort that vectors alone
// would need.
func (l *leg) searchHybrid(ctx context.Context) {
	if l.holds != holdsBoth {
		return
	}
	for _, f := range l.set.Filters {
		l.say("hybrid, %s: looking for the effort", filterName(f))
		who := l.choose(ctx, result.TaskHybrid, f)
		l.say("hybrid, %s", filterName(f))
		l.search(ctx, who, asking{
			kind: protocol.KindHybrid, filter: f,
			queries: func(round int) []protocol.Query { return l.hybridQueries(round, f.Tag) },
			row:     func(c *contender) result.Row { return l.searchRow(result.TaskHybrid, f, c) },
			after:   func(c *contender, row *result.Row) { row.Effort = c.effort[f.Name].effort },
		})
	}
}

func (l *leg) searchRow(task string, f data.Filter, c *contender) result.Row {
	row := l.row(task, c)
	row.Data, row.Filter = l.set.Name, f.Name
	if row.Missing == "" && f.Tag != "" && !c.hello.Filter {
		row.Missing = noFilter
	}
	return row
}

func filterName(f data.Filter) string {
	if f.Tag == "" {
		return "all records"
	}
	return "filter of " + f.Name
}

// textQueries gives the queries of a class for a round. Every round has others, as
// long as there are: what a product keeps of an answer is of no use when nobody asks
// the same again.
func (l *leg) textQueries(class string, round int) []protocol.Query {
	all := l.set.Texts[class]
	out := make([]protocol.Query, min(chunk, len(all)))
	for i := range out {
		out[i] = all[(round*chunk+i)%len(all)]
	}
	return out
}

// tagged gives queries a tag.
func tagged(queries []protocol.Query, tag string) []protocol.Query {
	for i := range queries {
		queries[i].Tag = tag
	}
	return queries
}

// vectorQueries gives the queries of a round: every round has others, and none those
// that told the recall, as far as there are enough.
func (l *leg) vectorQueries(round int, tag string) []protocol.Query {
	out := make([]protocol.Query, chunk)
	for i := range out {
		row := (recallQueries + round*chunk + i) % l.set.Asks
		out[i] = protocol.Query{Vector: &row, Tag: tag}
	}
	return out
}

// hybridQueries joins the vectors of a round with texts of all classes.
func (l *leg) hybridQueries(round int, tag string) []protocol.Query {
	out := l.vectorQueries(round, tag)
	for i := range out {
		of := l.set.Texts[l.set.Classes[i%len(l.set.Classes)]]
		q := of[(i/len(l.set.Classes)+round*7)%len(of)]
		out[i].Text, out[i].Words = q.Text, q.Words
	}
	return out
}

// search times queries in turns.
func (l *leg) search(ctx context.Context, who []*contender, a asking) {
	empty := map[*contender]int{}
	l.turns(ctx, who, figure{
		row: a.row, warm: true, rounds: l.rounds,
		sample: func(ctx context.Context, c *contender, round int) (protocol.Cost, error) {
			switch {
			case a.filter.Tag != "" && !c.hello.Filter:
				return protocol.Cost{}, &worker.Unsupported{Why: noFilter}
			case a.kind == protocol.KindHybrid && !c.hello.Hybrid:
				return protocol.Cost{}, &worker.Unsupported{Why: "text and vectors are not joined in one search"}
			}
			queries := a.queries(round)
			if round == 0 {
				found, slow, err := l.warmUp(ctx, c, a, queries)
				c.slow[a.key()] = slow
				for _, ids := range found.IDs {
					if len(ids) == 0 {
						empty[c]++
					}
				}
				return found.Cost, err
			}
			if c.slow[a.key()] {
				queries = few(queries, round, (slowSamples+l.rounds-1)/l.rounds)
			}
			found, err := l.find(ctx, c, a, queries)
			return found.Cost, err
		},
		after: func(c *contender, row *result.Row) {
			if n := empty[c]; n > least(empty, who) && !c.slow[a.key()] {
				row.Note = fmt.Sprintf("found nothing for %d of %d queries, others for fewer", n, chunk)
			}
			if a.after != nil {
				a.after(c, row)
			}
		},
	})
}

func (a *asking) key() string { return a.kind + "/" + a.filter.Name }

// least gives the smallest number of a count, of who is not slow and still there.
func least(n map[*contender]int, who []*contender) int {
	out := chunk
	for _, c := range who {
		if c.gone == "" {
			out = min(out, n[c])
		}
	}
	return out
}

// few gives n of the queries, from all over them, each round others.
func few(queries []protocol.Query, round, n int) []protocol.Query {
	var out []protocol.Query
	for i := range n {
		out = append(out, queries[(round+i*len(queries)/n)%len(queries)])
	}
	return out
}

// warmUp asks queries so that nothing is cold when it counts, and tells if the
// product is slow: then it asks only the first few.
func (l *leg) warmUp(ctx context.Context, c *contender, a asking, queries []protocol.Query) (found protocol.Found, slow bool, err error) {
	n := min(probes, len(queries))
	for range 2 { // the second time tells
		if found, err = l.find(ctx, c, a, queries[:n]); err != nil {
			return found, false, err
		}
	}
	slices.Sort(found.Times)
	if slow = percentile(found.Times, 0.5) > slowSeconds; !slow {
		found, err = l.find(ctx, c, a, queries)
	}
	if err == nil {
		err = l.checkTags(a.filter.Tag, found.IDs)
	}
	return found, slow, err
}

// find asks queries.
func (l *leg) find(ctx context.Context, c *contender, a asking, queries []protocol.Query) (protocol.Found, error) {
	s := protocol.Search{Kind: a.kind, Queries: queries, K: topK, Effort: c.effort[a.filter.Name].effort}
	if a.kind != protocol.KindText {
		s.Vectors = l.set.Asked
	}
	found, err := call[protocol.Found](ctx, l.runner, c, protocol.OpSearch, s)
	if err == nil && (len(found.IDs) != len(queries) || len(found.Times) != len(queries)) {
		err = &worker.Failure{Text: fmt.Sprintf("%d queries got %d answers in %d times", len(queries), len(found.IDs), len(found.Times))}
	}
	return found, err
}

// checkTags fails if a hit is no record that the filter lets through.
func (l *leg) checkTags(tag string, ids [][]int) error {
	if tag == "" {
		return nil
	}
	for _, hits := range ids {
		for _, id := range hits {
			if id < 0 || id >= l.set.Count+l.set.Extra || !l.set.Carries(l.corpus, id, tag) {
				return &worker.Failure{Text: fmt.Sprintf("a search for records tagged %s gave record %d, which is not", tag, id)}
			}
		}
	}
	return nil
}

// chosen is the setting of an approximate search under a filter.
type chosen struct {
	effort int
	recall float64
}

// choose finds the smallest effort of each contender that finds enough of the true
// nearest under a filter, or the one that finds most. It gives those that can be
// asked, and adds a row for each that cannot.
func (l *leg) choose(ctx context.Context, task string, f data.Filter) []*contender {
	var out []*contender
	for _, c := range l.all {
		if c.gone != "" || f.Tag != "" && !c.hello.Filter || task == result.TaskHybrid && !c.hello.Hybrid {
			out = append(out, c) // its row will say why
			continue
		}
		best, err := l.chooseFor(ctx, c, f)
		if err != nil {
			row := l.searchRow(task, f, c)
			row.Missing = l.failed(c, err)
			l.add(row)
			continue
		}
		c.effort[f.Name] = best
		l.say("%s: recall %.4f at effort %d", c.hello.Name, best.recall, best.effort)
		out = append(out, c)
	}
	return out
}

func (l *leg) chooseFor(ctx context.Context, c *contender, f data.Filter) (best chosen, err error) {
	efforts := c.hello.Effort
	if len(efforts) == 0 {
		efforts = []int{0}
	}
	best.recall = -1
	for _, effort := range efforts {
		recall, err := l.recall(ctx, c, f, effort)
		if err != nil {
			return best, err
		}
		if recall > best.recall {
			best = chosen{effort, recall}
		}
		if recall >= wantedRecall {
			break
		}
	}
	return best, nil
}

// recall gives the share of the true nearest that a contender finds at an effort.
func (l *leg) recall(ctx context.Context, c *contender, f data.Filter, effort int) (float64, error) {
	a := asking{kind: protocol.KindVector, filter: f}
	c.effort[f.Name] = chosen{effort: effort}
	queries := make([]protocol.Query, min(recallQueries, len(l.set.Truth[f.Name])))
	for i := range queries {
		queries[i] = protocol.Query{Vector: &i, Tag: f.Tag}
	}
	n := min(slowRecallQueries, len(queries))
	found, err := l.find(ctx, c, a, queries[:n])
	if err != nil {
		return 0, err
	}
	ids := found.IDs
	slices.Sort(found.Times)
	if percentile(found.Times, 0.5) <= slowSeconds {
		if found, err = l.find(ctx, c, a, queries[n:]); err != nil {
			return 0, err
		}
		ids = append(ids, found.IDs...)
	}
	if err := l.checkTags(f.Tag, ids); err != nil {
		return 0, err
	}
	sum := 0.0
	for i, hits := range ids {
		r, err := l.set.Recall(f.Name, i, hits)
		if err != nil {
			return 0, err
		}
		sum += r
	}
	return sum / float64(len(ids)), nil
}
