package loci

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/text"
)

// mentionsIn says whether one of the words, which are in their normal form, stands in
// a text as a word.
func mentionsIn(words []string, s string) bool {
	if s == "" {
		return false
	}
	s = normalize(s)
	for _, word := range words {
		for at := 0; ; {
			i := strings.Index(s[at:], word)
			if i < 0 {
				break
			}
			if from := at + i; text.IsWord(s, from, from+len(word)) {
				return true
			}
			at += i + 1
		}
	}
	return false
}

// mentionReader is what the texts of a record are read from.
type mentionReader interface {
	PageHistory(page int64) ([]store.PageVersionInfo, error)
	PageVersion(page, version int64) (*store.PageRevision, error)
	PointVersions(id int64) ([]store.PointVersion, error)
	PointEdgesFrom(id int64) ([]*store.PointEdge, error)
}

// mentions says whether a record mentions one of the words in any text that is kept
// of it, that of earlier versions too. What a relation between points says is its
// source's.
func mentions(tx mentionReader, r store.Stored, words []string) (bool, error) {
	m := mentionSearch{words: words}
	head := r.Head()
	m.text(head.Thread)
	m.text(head.Tags...)
	m.json(head.Metadata)
	for i := range head.Evidence {
		e := &head.Evidence[i]
		m.text(e.Source, e.SourceRevision, e.Quote)
		m.json(e.Metadata)
	}
	switch r := r.(type) {
	case *store.Memory:
		m.text(r.Type, r.Judgment, r.Reasoning)
	case *store.Entity:
		m.text(r.Type, r.Name, r.Summary)
		m.text(r.Aliases...)
		m.json(r.Attributes)
	case *store.Relation:
		m.text(r.Predicate, r.Reason)
	case *store.Event:
		m.text(r.Name, r.Summary, r.Reason)
	case *store.Note:
		m.text(r.Path)
	case *store.Chunk:
		m.text(r.NotePath, r.Content)
	case *store.Page:
		m.text(r.PageID, r.PinReason)
		err := m.page(tx, r.ID)
		return m.found, err
	case *store.Point:
		m.text(r.Title, r.Content)
		m.json(r.Data)
		err := m.point(tx, r.ID)
		return m.found, err
	}
	return m.found, nil
}

// mentionSearch looks through one text after the other until it has found a word.
type mentionSearch struct {
	words []string
	found bool
}

func (m *mentionSearch) text(texts ...string) {
	for _, s := range texts {
		m.found = m.found || mentionsIn(m.words, s)
	}
}

// json looks through the names and strings of a JSON value, and the value as it is
// written should it be none.
func (m *mentionSearch) json(raw []byte) {
	if m.found || len(raw) == 0 {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			break
		}
		switch v := token.(type) {
		case string:
			m.text(v)
		case json.Number:
			m.text(v.String())
		}
	}
	if !json.Valid(raw) {
		m.text(string(raw))
	}
}

// page looks through every revision of a page.
func (m *mentionSearch) page(tx mentionReader, id int64) error {
	history, err := tx.PageHistory(id)
	for _, v := range history {
		if err != nil || m.found {
			break
		}
		var r *store.PageRevision
		if r, err = tx.PageVersion(id, v.Version); err == nil && r != nil {
			m.text(r.Title, r.Summary, r.Content, r.Source)
			m.text(r.Tags...)
		}
	}
	return err
}

// point looks through the earlier versions of a point and the relations that go out
// from it.
func (m *mentionSearch) point(tx mentionReader, id int64) error {
	if m.found {
		return nil
	}
	versions, err := tx.PointVersions(id)
	if err != nil {
		return err
	}
	for i := range versions {
		v := &versions[i]
		m.text(v.Title, v.Content)
		m.json(v.Data)
		m.json(v.Metadata)
	}
	edges, err := tx.PointEdgesFrom(id)
	for _, e := range edges {
		m.text(e.Type)
		m.json(e.Properties)
	}
	return err
}
