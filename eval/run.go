package eval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// A Scored is a document (or thread) that was found, and its score.
type Scored struct {
	ID    string
	Score float64
}

// A Run is what was found for each query, by query id, best first.
type Run map[string][]Scored

// A SearchFunc answers a query with at most k documents of the query's scope,
// or threads if that is the task's unit, best first. For UnitSource it gives the
// documents; Search puts what they were made of in their place.
type SearchFunc func(ctx context.Context, q Query, k int) ([]Scored, error)

// Search runs every query of a set that has a relevant document, one after the
// other in the order of the file, for the best k.
func Search(ctx context.Context, s *Set, k int, search SearchFunc) (Run, error) {
	run := Run{}
	var sources map[string][]string
	if s.Unit == UnitSource {
		sources = make(map[string][]string, len(s.Docs))
		for _, d := range s.Docs {
			sources[d.ID] = d.Sources
		}
	}
	for _, q := range s.Judged() {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("eval: %w", err)
		}
		hits, err := search(ctx, q, k)
		if err != nil {
			return nil, fmt.Errorf("eval: query %q: %w", q.ID, err)
		}
		if sources != nil {
			hits = expand(hits, sources, k)
		}
		run[q.ID] = hits
	}
	return run, nil
}

// expand puts what documents were made of in their place, in its own order and each
// once, where it stands highest, up to the first k. All that one document stands for
// has that document's score.
func expand(hits []Scored, sources map[string][]string, k int) []Scored {
	out := make([]Scored, 0, len(hits))
	seen := make(map[string]bool, len(hits))
	for _, h := range hits {
		for _, id := range sources[h.ID] {
			if len(out) == k {
				return out
			}
			if !seen[id] {
				seen[id] = true
				out = append(out, Scored{id, h.Score})
			}
		}
	}
	return out
}

// ids gives the ranking without repeats; of a repeated id the first counts.
func ids(hits []Scored) []string {
	out := make([]string, 0, len(hits))
	seen := make(map[string]bool, len(hits))
	for _, h := range hits {
		if !seen[h.ID] {
			seen[h.ID] = true
			out = append(out, h.ID)
		}
	}
	return out
}

// WriteRun writes a run as lines of query id, document id and score separated
// by tabs, queries in ascending order of their ids and documents by rank. The
// scores are written so that reading gives the same numbers. A query that found
// nothing has no line. It refuses a run that ReadRun would not give back:
// scores that ascend or are not finite, an id twice for a query.
func WriteRun(w io.Writer, run Run) error {
	b := bufio.NewWriter(w)
	queries := make([]string, 0, len(run))
	for q := range run {
		queries = append(queries, q)
	}
	slices.Sort(queries)
	for _, q := range queries {
		if err := checkID(q); err != nil {
			return fmt.Errorf("eval: query: %w", err)
		}
		seen := map[string]bool{}
		last := math.Inf(1)
		for _, h := range run[q] {
			if err := checkID(h.ID); err != nil {
				return fmt.Errorf("eval: query %q: document: %w", q, err)
			}
			switch {
			case math.IsNaN(h.Score) || math.IsInf(h.Score, 0):
				return fmt.Errorf("eval: query %q: the score of document %q is not finite", q, h.ID)
			case h.Score > last:
				return fmt.Errorf("eval: query %q: document %q scores more than the one before it", q, h.ID)
			case seen[h.ID]:
				return fmt.Errorf("eval: query %q: document %q is there twice", q, h.ID)
			}
			seen[h.ID], last = true, h.Score
			b.WriteString(q)
			b.WriteByte('\t')
			b.WriteString(h.ID)
			b.WriteByte('\t')
			b.WriteString(strconv.FormatFloat(h.Score, 'g', -1, 64))
			b.WriteByte('\n')
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	return nil
}

// ReadRun reads what WriteRun writes, or another program's run in that form:
// the lines may come in any order, a query's documents are ranked by descending
// score, and ties keep the order of the file. Name stands for the file in
// errors.
func ReadRun(r io.Reader, name string) (Run, error) {
	run := Run{}
	seen := map[[2]string]bool{}
	err := lines(r, name, func(line []byte) error {
		f, err := columns(line, 3)
		if err != nil {
			return err
		}
		score, err := strconv.ParseFloat(f[2], 64)
		if err != nil || math.IsNaN(score) || math.IsInf(score, 0) {
			return fmt.Errorf("score %q, want a finite number", f[2])
		}
		if err := errors.Join(checkID(f[0]), checkID(f[1])); err != nil {
			return err
		}
		if key := [2]string{f[0], f[1]}; seen[key] {
			return fmt.Errorf("query %q and document %q are there twice", f[0], f[1])
		} else {
			seen[key] = true
		}
		run[f[0]] = append(run[f[0]], Scored{f[1], score})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, hits := range run {
		slices.SortStableFunc(hits, func(a, b Scored) int {
			switch {
			case a.Score > b.Score:
				return -1
			case a.Score < b.Score:
				return 1
			}
			return 0
		})
	}
	return run, nil
}
