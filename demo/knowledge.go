package demo

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loci-memory/loci"
)

// knowledge holds a small graph of people in the corpus, in the form that
// graph.apply_batch takes, and a folder of notes.
//
//go:embed all:knowledge
var knowledge embed.FS

func (t *tour) graph() error {
	t.title("A small graph")
	data, err := knowledge.ReadFile("knowledge/graph.json")
	if err != nil {
		return err
	}
	var batch loci.GraphBatch
	if err := json.Unmarshal(data, &batch); err != nil {
		return fmt.Errorf("demo: the graph: %w", err)
	}
	receipt, err := t.db.Graph().ApplyBatch(t.ctx, batch)
	if err != nil {
		return err
	}
	for _, rule := range []loci.PredicateRule{
		{Predicate: "brother of", Symmetric: true}, {Predicate: "friend of", Symmetric: true}, {Predicate: "老师", Inverse: "学生"},
	} {
		if _, err := t.db.Graph().SetPredicateRule(t.ctx, rule); err != nil {
			return err
		}
	}
	if _, err := t.db.Graph().SetPredicateEquivalents(t.ctx, loci.DefaultNamespace, [][]string{{"老师", "师父", "先生"}}); err != nil {
		return err
	}
	names := map[loci.ID]string{}
	byName := map[string]loci.ID{}
	for _, e := range receipt.Value.Entities {
		names[e.ID], byName[e.Name] = e.Name, e.ID
	}
	t.para(fmt.Sprintf("%d people of the corpus, %d relations and %d events were written in one batch, all or nothing.",
		len(receipt.Value.Entities), len(receipt.Value.Relations), len(receipt.Value.Events)))
	for _, query := range []string{"Who is the mother of Hamlet?", "颜回的师父是谁"} {
		r, err := t.db.SearchPreset(t.ctx, loci.PresetRequest{Preset: loci.PresetGraph, Query: query})
		if err != nil {
			return err
		}
		t.line("")
		t.line("  %s", t.paint(bold, query))
		for _, rel := range r.Graph.Relations[:min(len(r.Graph.Relations), 3)] {
			t.line("      %s %s %s", names[rel.SubjectID], rel.Predicate, names[rel.ObjectID])
		}
		if len(r.Graph.Relations) == 0 {
			t.err = errors.Join(t.err, fmt.Errorf("demo: no relation answers %q", query))
		}
	}
	return t.path(byName["Ophelia"], byName["Horatio"])
}

// path shows how two people of the graph are connected.
func (t *tour) path(from, to loci.ID) error {
	path, err := t.db.Graph().Path(t.ctx, from, to, loci.ReadFilter{}, loci.GraphOptions{Direction: loci.DirectionBoth})
	if err != nil {
		return err
	}
	steps := make([]string, len(path))
	for i, e := range path {
		steps[i] = e.Name
	}
	t.line("")
	t.line("  %s", t.paint(bold, "How are Ophelia and Horatio connected?"))
	t.line("      %s", strings.Join(steps, " -> "))
	return nil
}

func (t *tour) notes() error {
	t.title("A folder of notes")
	dir, err := os.MkdirTemp("", "loci-demo-notes-")
	if err != nil {
		return err
	}
	defer func() { t.err = errors.Join(t.err, os.RemoveAll(dir)) }()
	root, err := fs.Sub(knowledge, "knowledge/notes")
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dir, "notes"), root); err != nil {
		return err
	}
	if _, err := t.db.Notes().SetRoot(t.ctx, loci.DefaultNamespace, filepath.Join(dir, "notes")); err != nil {
		return err
	}
	receipt, err := t.db.Notes().SyncDir(t.ctx, loci.DefaultNamespace, loci.SyncOptions{})
	if err != nil {
		return err
	}
	t.para(fmt.Sprintf("%d files became notes, cut into chunks by paragraph; their folders are tags. A hit is the best chunk of its note.", receipt.Value.Added))
	for _, query := range []string{"why is there a red thread at the hilt", "谁借走了唐诗", "foil_unbated"} {
		r, err := t.db.Search(t.ctx, loci.SearchRequest{Query: query, Kinds: []loci.Kind{loci.KindChunk}, Limit: new(1)})
		if err != nil {
			return err
		}
		t.line("")
		t.line("  %s", t.paint(bold, query))
		if len(r.Hits) == 0 {
			t.err = errors.Join(t.err, fmt.Errorf("demo: no note answers %q", query))
			continue
		}
		chunk := r.Hits[0].Record.(*loci.Chunk)
		note, err := t.db.Notes().Get(t.ctx, chunk.NoteID, loci.ReadFilter{})
		if err != nil {
			return err
		}
		t.line("      %s", t.paint(dim, fmt.Sprintf("%s, line %d", note.Path, chunk.Offset)))
		for _, l := range wrap(flat(chunk.Content), columns-8, 3) {
			t.line("      %s", l)
		}
	}
	return nil
}
