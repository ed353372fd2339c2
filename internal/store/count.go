package store

// CountPlaces calls fn with the number of records of each kind in each scope: of
// one namespace, or of all for "". It looks at an entry of an index for each record.
// Points count for the scope of their memory, which may come more than once.
func (s *session) CountPlaces(namespace string, fn func(namespace, scope string, kind Kind, n int64)) error {
	sql, id := "SELECT namespace_id, kind, scope_id, count(*) FROM records WHERE $1 = 0 GROUP BY namespace_id, kind, scope_id", int64(0)
	if namespace != "" {
		var ok bool
		var err error
		if id, ok, err = s.StringID(namespace); err != nil || !ok {
			return err
		}
		sql = "SELECT namespace_id, kind, scope_id, count(*) FROM records WHERE namespace_id = $1 GROUP BY kind, scope_id"
	}
	st, err := s.once(sql)
	if err != nil {
		return err
	}
	defer st.close()
	st.bindInt(1, id)
	type place struct{ namespace, kind, scope, n int64 }
	var places []place // names are looked up once the statement is done with
	for {
		found, err := st.step()
		if err != nil {
			return err
		}
		if !found {
			break
		}
		places = append(places, place{st.columnInt(0), st.columnInt(1), st.columnInt(2), st.columnInt(3)})
	}
	for _, p := range places {
		namespace, err := s.String(p.namespace)
		if err != nil {
			return err
		}
		scope, err := s.String(p.scope)
		if err != nil {
			return err
		}
		if Kind(p.kind).IsPoint() {
			scope = scopeOfPlace(scope)
		}
		fn(namespace, scope, Kind(p.kind), p.n)
	}
	return nil
}
