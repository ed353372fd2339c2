package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// maxOutline is the most outline rows that a scope has.
const maxOutline = 32

// maxFindingsOfRule leaves room in the report for what other rules find.
const maxFindingsOfRule = maxFindings / 4

// pageRules are queries for what must not be. Each gives the number that its
// finding names.
var pageRules = [...]struct{ finds, sql string }{
	{"page %d has no row of its own", fmt.Sprintf("SELECT r.id FROM records r LEFT JOIN pages p ON p.id = r.id WHERE r.kind = %d AND p.id IS NULL", KindPage)},
	{"page %d has no record", fmt.Sprintf("SELECT p.id FROM pages p LEFT JOIN records r ON r.id = p.id WHERE r.id IS NULL OR r.kind <> %d", KindPage)},
	{"page %d has no scope", "SELECT p.id FROM pages p LEFT JOIN context_scopes c ON c.id = p.context_id WHERE c.id IS NULL"},
	{"page %d lies in another namespace or scope than its record", `SELECT p.id FROM pages p JOIN context_scopes c ON c.id = p.context_id
		JOIN records r ON r.id = p.id WHERE r.namespace_id <> c.namespace_id OR r.scope_id <> c.scope_id`},
	{"page %d has another current version than the last of its revisions", `SELECT p.id FROM pages p WHERE p.version IS NOT
		(SELECT max(v.version) FROM page_versions v WHERE v.page_record = p.id)`},
	{"page %d has another length than its current revision", `SELECT p.id FROM pages p JOIN page_versions v
		ON v.page_record = p.id AND v.version = p.version WHERE p.bytes <> octet_length(v.content)`},
	{"page %d lacks a revision", `SELECT p.id FROM pages p WHERE p.origin_id IS NULL AND p.version <>
		(SELECT count(*) FROM page_versions v WHERE v.page_record = p.id AND v.version > 0)`},
	{"page %d has a place that its tier does not have", `SELECT id FROM pages WHERE tier NOT IN (0, 1, 2)
		OR (tier = 2) <> (seq > 0) OR (tier = 1) <> (admission > 0) OR seq < 0 OR admission < 0
		OR (outline <> 0) <> (row_version > 0) OR (outline <> 0 AND tier <> 2)`},
	{"scope %d has more outline rows than there may be", fmt.Sprintf(`SELECT context_id FROM pages WHERE outline <> 0
		GROUP BY context_id HAVING count(*) > %d`, maxOutline)},
	{"scope %d has two pages at one place in core", `SELECT context_id FROM pages WHERE tier = 2
		GROUP BY context_id, seq HAVING count(*) > 1`},
	{"page %d is a copy of a record that is not there", `SELECT p.id FROM pages p LEFT JOIN records o ON o.id = p.origin_id
		WHERE (p.origin_id IS NULL) <> (p.origin_kind IS NULL) OR p.origin_id IS NOT NULL AND o.kind IS NOT p.origin_kind`},
	{"a page links to page %d, which its scope does not have", `SELECT l.target FROM page_links l LEFT JOIN pages p ON p.id = l.page_record
		LEFT JOIN pages q ON q.id = l.target WHERE q.id IS NULL OR q.id = p.id OR p.context_id IS NOT q.context_id`},
	{"the published text of scope %d has no scope", `SELECT x.context_id FROM context_published x
		LEFT JOIN context_scopes c ON c.id = x.context_id WHERE c.id IS NULL`},
	{"the log of scope %d has no scope", `SELECT DISTINCT x.context_id FROM context_log x
		LEFT JOIN context_scopes c ON c.id = x.context_id WHERE c.id IS NULL`},
	{"checkpoint %d has no scope", `SELECT x.id FROM context_checkpoints x
		LEFT JOIN context_scopes c ON c.id = x.context_id WHERE c.id IS NULL`},
	// The signs keep the index that is to be checked out of it.
	{"the log of scope %d has a key twice, or an empty one", `SELECT +context_id FROM context_log WHERE entry_key IS NOT NULL
		GROUP BY +context_id, +type, +entry_key HAVING count(*) > 1 OR +entry_key = ''`},
	{"the log of scope %d has an entry without a number", "SELECT DISTINCT context_id FROM context_log WHERE number < 1"},
}

// checkContexts looks at the context store: what its tables say of each other,
// and what is kept twice.
func (tx *ReadTx) checkContexts() (findings []string, err error) {
	for _, rule := range pageRules {
		found := 0
		err := tx.each(rule.sql, func(st stmt) error {
			if found++; found <= maxFindingsOfRule {
				findings = append(findings, fmt.Sprintf(rule.finds, st.columnInt(0)))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, look := range []func() ([]string, error){tx.checkPageLinks, tx.checkPageTags, tx.checkCheckpoints, tx.checkContextJSON} {
		found, err := look()
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// checkPageLinks compares the links of the revisions with the table in which
// they are looked up from the other side.
func (tx *ReadTx) checkPageLinks() (findings []string, err error) {
	has, err := tx.once("SELECT 1 FROM page_links WHERE target = $1 AND page_record = $2")
	if err != nil {
		return nil, err
	}
	defer has.close()
	var inRevisions, inTable int64
	var page int64
	seen := map[int64]bool{} // targets of page
	err = tx.each("SELECT page_record, links FROM page_versions WHERE links IS NOT NULL ORDER BY page_record", func(st stmt) error {
		if id := st.columnInt(0); id != page {
			page = id
			clear(seen)
		}
		links := decodeIDs(st.columnRaw(1))
		if !bytes.Equal(encodeIDs(links), st.columnRaw(1)) && len(findings) < maxFindings {
			findings = append(findings, fmt.Sprintf("the links of a revision of page %d cannot be read", page))
		}
		for _, target := range links {
			if seen[target] {
				continue
			}
			seen[target] = true
			inRevisions++
			has.bindInt(1, target)
			has.bindInt(2, page)
			found, err := has.step()
			has.reset()
			if err != nil {
				return err
			}
			if !found && len(findings) < maxFindings {
				findings = append(findings, fmt.Sprintf("a link of page %d to page %d is not listed", page, target))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = tx.each("SELECT count(*) FROM page_links", func(st stmt) error { inTable = st.columnInt(0); return nil })
	if err == nil && inTable != inRevisions {
		findings = append(findings, fmt.Sprintf("%d links of pages are listed, the revisions have %d", inTable, inRevisions))
	}
	return findings, err
}

// checkPageTags compares the tags of every page's record with those of its
// current revision, and reads those of the others.
func (tx *ReadTx) checkPageTags() (findings []string, err error) {
	err = tx.each(`SELECT v.page_record, v.version = p.version, r.tags, v.tags FROM page_versions v JOIN pages p ON p.id = v.page_record
		JOIN records r ON r.id = p.id`, func(st stmt) error {
		if len(findings) >= maxFindings {
			return nil
		}
		id, current := st.columnInt(0), st.columnInt(1) != 0
		ids := decodeIDs(st.columnRaw(2))
		var tags []string
		if raw := st.columnRaw(3); len(raw) > 0 {
			if err := json.Unmarshal(raw, &tags); err != nil {
				findings = append(findings, fmt.Sprintf("the tags of a revision of page %d cannot be read", id))
				return nil
			}
		}
		if !current {
			return nil
		}
		ofRecord := make([]string, 0, len(ids))
		for _, id := range ids {
			tag, err := tx.String(id)
			if err != nil {
				return err
			}
			ofRecord = append(ofRecord, tag)
		}
		if !slices.Equal(ofRecord, tags) {
			findings = append(findings, fmt.Sprintf("page %d has other tags than its current revision", id))
		}
		return nil
	})
	return findings, err
}

// checkCheckpoints reads every checkpoint.
func (tx *ReadTx) checkCheckpoints() (findings []string, err error) {
	err = tx.each("SELECT id, pages FROM context_checkpoints", func(st stmt) error {
		if _, err := decodeCheckpoint(st.columnRaw(1)); err != nil && len(findings) < maxFindings {
			findings = append(findings, fmt.Sprintf("the pages of checkpoint %d cannot be read", st.columnInt(0)))
		}
		return nil
	})
	return findings, err
}

// checkContextJSON looks whether what is JSON can be read as such.
func (tx *ReadTx) checkContextJSON() (findings []string, err error) {
	for _, look := range []struct{ finds, sql string }{
		{"the state of scope %d cannot be read", "SELECT id, state FROM context_scopes"},
		{"an entry in the log of scope %d cannot be read", "SELECT context_id, body FROM context_log"},
		{"the policy of namespace %d cannot be read", "SELECT namespace_id, policy FROM context_policies"},
	} {
		err := tx.each(look.sql, func(st stmt) error {
			if !json.Valid(st.columnRaw(1)) && len(findings) < maxFindings {
				findings = append(findings, fmt.Sprintf(look.finds, st.columnInt(0)))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return findings, nil
}
