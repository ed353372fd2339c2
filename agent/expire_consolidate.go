package agent

import (
	"context"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/store"
)

// consolidate turns old episodes into facts.
func (m *AgentMemory) consolidate(ctx context.Context, out *AutoExpired) error {
	facts, truncated := m.Semantic(), false
	err := m.batches(ctx, func(tx *store.WriteTx, row *store.AgentMemory) (int, bool, error) {
		w, err := facts.writer(tx, row)
		if err != nil || w.policy.ConsolidateAfterSeconds == nil {
			return 0, false, err
		}
		// One more than is wanted says whether there are more. Those of one call are all
		// that one call may turn, so a batch never needs to be cut.
		room := min(expireBatch, mostConsolidated-int(out.Consolidated))
		old, err := tx.PointsBetween(row.Place(store.KindEpisode), w.now, math.MinInt64,
			before(w.now, *w.policy.ConsolidateAfterSeconds), nil, room+1)
		if err != nil {
			return 0, false, err
		}
		more := len(old) > room
		old = old[:min(len(old), room)]
		for _, episode := range old {
			if err := w.becomeFact(episode); err != nil {
				return 0, false, err
			}
		}
		truncated = more && int(out.Consolidated)+len(old) == mostConsolidated
		return len(old), more && !truncated, nil
	}, &out.Consolidated)
	out.Truncated = truncated && err == nil
	return err
}

// before is the time that lies so many seconds before another.
func before(now, seconds int64) int64 {
	if seconds > (now-math.MinInt64/2)/1_000_000 {
		return math.MinInt64
	}
	return now - seconds*1_000_000
}

// becomeFact writes a fact of an episode, gives it the episode's relations, and
// removes that. w writes facts.
func (w *writer) becomeFact(episode *store.Point) error {
	held, err := w.live(episode.Key, true)
	if err != nil {
		return err
	}
	fact := &store.Point{
		Record: store.Record{
			Kind: store.KindFact, Namespace: episode.Namespace, Scope: episode.Scope, Thread: episode.Thread, Position: episode.Position,
			Created: episode.Created, Updated: max(w.s.m.link.Now().UnixMicro(), episode.Created), Tags: episode.Tags,
			Metadata: episode.Metadata,
		},
		Key: episode.Key, Version: 1, Recorded: w.now, Expires: episode.Expires, ValidFrom: episode.Happened, Content: episode.Content,
	}
	if held != nil {
		if fact.Key, err = w.tx.FreePointKey(w.place, w.now); err != nil {
			return err
		}
	}
	// What has expired holds neither the free id nor the position.
	if _, err := w.live(fact.Key, true); err != nil {
		return err
	}
	if err := w.vacate(fact); err != nil {
		return err
	}
	if fact.Position != nil {
		taken, err := w.tx.PointInThread(w.row.NamespaceID, w.place, store.KindFact, fact.Thread, *fact.Position)
		if err != nil {
			return err
		}
		if taken != nil {
			fact.Position = nil
		}
	}
	vector, _, hasVector, err := w.tx.Vector(w.space.ID, episode.ID, nil)
	if err != nil {
		return err
	}
	fingerprint, _, err := w.tx.VectorText(w.space.ID, episode.ID)
	if err != nil {
		return err
	}
	if err := w.tx.AddPoint(w.place, fact); err != nil {
		return err
	}
	if err := w.restage(fact); err != nil {
		return err
	}
	if hasVector {
		// It was made of the same text, which the embedder need not see again.
		if err := w.tx.PutVector(w.space, &fact.Record, fingerprint, vector); err != nil {
			return err
		}
	}
	if err := w.moveEdges(episode, fact); err != nil {
		return err
	}
	return w.tx.RemovePoint(episode)
}

// moveEdges gives a point the relations of another one. Those whose other end cannot
// be seen go with it.
func (w *writer) moveEdges(from, to *store.Point) error {
	out, err := w.tx.PointEdgesFrom(from.ID)
	if err != nil {
		return err
	}
	in, err := w.tx.PointEdgesTo(from.ID)
	if err != nil {
		return err
	}
	in = slices.DeleteFunc(in, func(e *store.PointEdge) bool { return e.Source == from.ID }) // out has it
	for _, e := range append(out, in...) {
		t := triple{kindOfPlace(w.row, e.SourcePlace), e.SourceKey, e.Type, kindOfPlace(w.row, e.TargetPlace), e.TargetKey}
		if t.fromKind == 0 || t.toKind == 0 {
			continue
		}
		place := e.SourcePlace
		if e.Source == from.ID {
			t.fromKind, t.from, e.Source, place = to.Kind, to.Key, to.ID, to.ScopeID
		}
		if e.Target == from.ID {
			t.toKind, t.to, e.Target = to.Kind, to.Key, to.ID
		}
		if e.Key, err = w.freeEdge(t.hash()); err != nil {
			return err
		}
		if err := w.tx.MovePointEdge(e, place); err != nil {
			return err
		}
	}
	return nil
}
