package loci

import (
	"github.com/loci-memory/loci/internal/errs"
)

// SearchPreset is a prepared way to search: which kinds of knowledge are looked
// through, each by its own method.
type SearchPreset string

// The presets.
const (
	PresetMemory SearchPreset = "memory" // memories
	PresetGraph  SearchPreset = "graph"  // entities and what relates them
	PresetNotes  SearchPreset = "notes"  // chunks of notes
	PresetRAG    SearchPreset = "rag"    // memories and the graph; the default
	PresetBroad  SearchPreset = "broad"  // all three
)

// SearchPresets lists every preset.
func SearchPresets() []SearchPreset {
	return []SearchPreset{PresetMemory, PresetGraph, PresetNotes, PresetRAG, PresetBroad}
}

// ParseSearchPreset reads a preset's name; another one is ErrValidation.
func ParseSearchPreset(name string) (SearchPreset, error) {
	for _, p := range SearchPresets() {
		if string(p) == name {
			return p, nil
		}
	}
	return "", errs.Invalid("preset", "must be memory, graph, notes, rag or broad")
}

// UsesMemory says whether the preset looks through memories.
func (p SearchPreset) UsesMemory() bool {
	return p == PresetMemory || p == PresetRAG || p == PresetBroad
}

// UsesGraph says whether the preset looks through the graph.
func (p SearchPreset) UsesGraph() bool {
	return p == PresetGraph || p == PresetRAG || p == PresetBroad
}

// UsesNotes says whether the preset looks through notes.
func (p SearchPreset) UsesNotes() bool { return p == PresetNotes || p == PresetBroad }

// PresetRequest asks for everything about a query that fits the budget.
type PresetRequest struct {
	Preset         SearchPreset `json:"preset,omitempty"` // default rag
	Query          string       `json:"query"`            // required, not blank
	Filter         ReadFilter   `json:"filter,omitzero"`
	EmbedSpace     string       `json:"embed_space,omitempty"` // as in a search
	NoText         bool         `json:"no_text,omitempty"`     // leave the text path out, but for names of files and folders
	NoVector       bool         `json:"no_vector,omitempty"`   // leave the vector path out
	NoRerank       bool         `json:"no_rerank,omitempty"`   // leave the reranker out
	Budget         PresetBudget `json:"budget,omitzero"`
	CandidateLimit *int         `json:"candidate_limit,omitempty"` // 1..10000, default 64
}

// PresetBudget bounds what each path gives, in characters unless said. The first
// hit of a path is kept however long it is; a budget of 0 turns its path off.
type PresetBudget struct {
	MemoryChars         *int `json:"memory_chars,omitempty"`          // judgments; default 2000
	NotesChars          *int `json:"notes_chars,omitempty"`           // contents of chunks; default 3000
	SeedEntities        *int `json:"seed_entities,omitempty"`         // number of entities to start from, from 1; default 4
	GraphRelationsChars *int `json:"graph_relations_chars,omitempty"` // relations that meet the query; default 1000
	GraphContextChars   *int `json:"graph_context_chars,omitempty"`   // relations and events around them; default 2000
	NoteTitles          *int `json:"note_titles,omitempty"`           // number of notes found by their file names; default 5
}

// PresetResult is the answer to a preset search. What did not run is empty.
type PresetResult struct {
	Preset          SearchPreset      `json:"preset"`
	Memories        []SearchHit       `json:"memories"`
	Graph           GraphSection      `json:"graph"`
	Notes           NoteSection       `json:"notes"`
	Revision        int64             `json:"revision"`
	IndexedRevision int64             `json:"indexed_revision"`
	Diagnostics     SearchDiagnostics `json:"diagnostics"`
}

// GraphSection is what the graph says about a query.
type GraphSection struct {
	Entities         []Entity   `json:"entities"`          // the entities to start from, best first
	Relations        []Relation `json:"relations"`         // theirs that meet the query, best first
	ContextRelations []Relation `json:"context_relations"` // others among these entities, by id
	ContextEvents    []Event    `json:"context_events"`    // events that at least two of them took part in, by id
}

// NoteSection is what notes say about a query. No chunk stands in two lists.
type NoteSection struct {
	Titles   []SearchHit `json:"titles"`   // by file name
	Contents []SearchHit `json:"contents"` // by text, the best chunk of each note
	Paths    []SearchHit `json:"paths"`    // by folder names, when there were too few titles
}

// ContextualHit is a hit with what the graph knows about its tags.
type ContextualHit struct {
	SearchHit
	// Context are the entities whose name or alias is one of the hit's tags, in
	// its namespace and scope, with their neighbours and the relations between.
	Context Neighborhood `json:"context"`
}

// ContextualResult is the answer to a search with context.
type ContextualResult struct {
	Hits            []ContextualHit   `json:"hits"`
	Revision        int64             `json:"revision"`
	IndexedRevision int64             `json:"indexed_revision"`
	Total           *int64            `json:"total,omitempty"`
	Diagnostics     SearchDiagnostics `json:"diagnostics"`
}
