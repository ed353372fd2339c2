package store

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Check is the result of a deep check.
type Check struct {
	Integrity        string // "ok", or what is wrong
	ForeignKeyErrors int64
}

// maxFindings bounds how much of what is wrong a check reports.
const maxFindings = 20

// DeepCheck reads the whole database: its pages, its foreign keys, and what
// the store keeps twice.
func (s *Store) DeepCheck(ctx context.Context) (check Check, err error) {
	err = s.Read(ctx, func(tx *ReadTx) error {
		var findings []string
		pages := func() ([]string, error) { return tx.checkPages(s.dialect.checkPages) }
		for _, look := range []func() ([]string, error){pages, tx.checkTags, tx.checkCounts, tx.checkNames, tx.checkScopes, tx.checkEdges, tx.checkVectors, tx.checkContexts, tx.checkAgent} {
			found, err := look()
			if err != nil {
				return err
			}
			findings = append(findings, found...)
		}
		check.Integrity = "ok"
		if len(findings) > 0 {
			check.Integrity = strings.Join(findings[:min(len(findings), maxFindings)], "; ")
		}
		check.ForeignKeyErrors, err = tx.countRows(s.dialect.checkForeignKeys)
		return err
	})
	return check, err
}

// each runs a statement and calls fn on every row.
func (tx *ReadTx) each(sql string, fn func(stmt) error) error {
	st, err := tx.once(sql)
	if err != nil {
		return err
	}
	defer st.close()
	for {
		found, err := st.step()
		if err != nil || !found {
			return err
		}
		if err := fn(st); err != nil {
			return err
		}
	}
}

func (tx *ReadTx) countRows(sql string) (n int64, err error) {
	err = tx.each(sql, func(stmt) error { n++; return nil })
	return n, err
}

func (tx *ReadTx) checkPages(sql string) (findings []string, err error) {
	err = tx.each(sql, func(st stmt) error {
		if line := st.columnText(0); line != "ok" {
			findings = append(findings, line)
		}
		return nil
	})
	return findings, err
}

// checkTags compares the tags in the records with the table they are searched
// in: every tag of a record has its row there, and there are no others.
func (tx *ReadTx) checkTags() (findings []string, err error) {
	has, err := tx.once("SELECT 1 FROM record_tags WHERE namespace_id = $1 AND tag_id = $2 AND record_id = $3")
	if err != nil {
		return nil, err
	}
	defer has.close()
	var inRecords, inTable int64
	err = tx.each("SELECT id, namespace_id, tags FROM records WHERE tags IS NOT NULL", func(st stmt) error {
		id, namespace := st.columnInt(0), st.columnInt(1)
		for _, tag := range decodeIDs(bytes.Clone(st.columnRaw(2))) {
			inRecords++
			has.bindInt(1, namespace)
			has.bindInt(2, tag)
			has.bindInt(3, id)
			found, err := has.step()
			has.reset()
			if err != nil {
				return err
			}
			if !found {
				findings = append(findings, fmt.Sprintf("record %d is not listed under one of its tags", id))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = tx.each("SELECT count(*) FROM record_tags", func(st stmt) error { inTable = st.columnInt(0); return nil })
	if err == nil && inTable != inRecords {
		findings = append(findings, fmt.Sprintf("%d tags are listed, the records have %d", inTable, inRecords))
	}
	return findings, err
}

// checkEdges compares what relations keep of their records with the records.
func (tx *ReadTx) checkEdges() (findings []string, err error) {
	err = tx.each(`SELECT r.id, r.created_at, r.tags, x.created_at, x.tags FROM relations x JOIN records r ON r.id = x.id`, func(st stmt) error {
		tags := bytes.Clone(st.columnRaw(2))
		if st.columnInt(1) != st.columnInt(3) || !bytes.Equal(tags, st.columnRaw(4)) {
			findings = append(findings, fmt.Sprintf("relation %d does not agree with its record on time and tags", st.columnInt(0)))
		}
		return nil
	})
	return findings, err
}

// checkCounts compares the counts by kind with the records.
func (tx *ReadTx) checkCounts() (findings []string, err error) {
	var stored, found [kindLimit]int64
	read := func(into *[kindLimit]int64) func(stmt) error {
		return func(st stmt) error {
			if kind := st.columnInt(0); kind >= 0 && kind < kindLimit {
				into[kind] = st.columnInt(1)
			}
			return nil
		}
	}
	if err := tx.each("SELECT kind, n FROM counts", read(&stored)); err != nil {
		return nil, err
	}
	if err := tx.each("SELECT kind, count(*) FROM records GROUP BY kind", read(&found)); err != nil {
		return nil, err
	}
	for kind := range stored {
		if stored[kind] != found[kind] {
			findings = append(findings, fmt.Sprintf("%d records of kind %d are counted, there are %d", stored[kind], kind, found[kind]))
		}
	}
	return findings, nil
}
