package store

import "fmt"

// checkNames compares the entities with the table that they are found in by
// name: every name and alias has its row there, and there are no others.
func (tx *ReadTx) checkNames() (findings []string, err error) {
	has, err := tx.once(`SELECT 1 FROM entity_names WHERE namespace_id = $1 AND name_key = $2 AND scope_id = $3
		AND is_alias = $4 AND entity_id = $5`)
	if err != nil {
		return nil, err
	}
	defer has.close()
	var ids []int64
	err = tx.each("SELECT id FROM entities", func(st stmt) error { ids = append(ids, st.columnInt(0)); return nil })
	if err != nil {
		return nil, err
	}
	var inEntities, inTable int64
	for _, id := range ids {
		e, err := tx.Entity(id)
		if err != nil {
			return nil, err
		}
		if e == nil {
			findings = append(findings, fmt.Sprintf("entity %d has no record", id))
			continue
		}
		look := func(key string, alias int64) error {
			inEntities++
			has.bindInt(1, e.NamespaceID)
			has.bindText(2, key)
			has.bindInt(3, e.ScopeID)
			has.bindInt(4, alias)
			has.bindInt(5, id)
			found, err := has.step()
			has.reset()
			if err == nil && !found {
				findings = append(findings, fmt.Sprintf("entity %d is not listed under one of its names", id))
			}
			return err
		}
		if err := look(e.NameKey, 0); err != nil {
			return nil, err
		}
		for _, alias := range e.Aliases {
			if alias == e.NameKey {
				continue
			}
			if err := look(alias, 1); err != nil {
				return nil, err
			}
		}
	}
	err = tx.each("SELECT count(*) FROM entity_names", func(st stmt) error { inTable = st.columnInt(0); return nil })
	if err == nil && inTable != inEntities {
		findings = append(findings, fmt.Sprintf("%d names are listed, the entities have %d", inTable, inEntities))
	}
	return findings, err
}

// checkScopes compares the scopes that stand in the graph's indexes with those
// of the records.
func (tx *ReadTx) checkScopes() (findings []string, err error) {
	for _, sql := range []string{
		"SELECT x.id FROM relations x JOIN records r ON r.id = x.id WHERE r.scope_id <> x.scope_id",
		"SELECT p.event_id FROM participants p JOIN records r ON r.id = p.event_id WHERE r.scope_id <> p.scope_id",
	} {
		err := tx.each(sql, func(st stmt) error {
			findings = append(findings, fmt.Sprintf("record %d is listed under another scope", st.columnInt(0)))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return findings, nil
}
