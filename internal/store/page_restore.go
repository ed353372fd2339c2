package store

// PagePlaces calls fn with every page of a scope as a checkpoint has it, by
// ascending record id, until fn gives false. fn must neither call PagePlaces nor
// write.
func (s *session) PagePlaces(context int64, fn func(CheckpointPage) bool) error {
	return s.each(sqlPagePlaces, []int64{context}, func(st stmt) bool {
		return fn(CheckpointPage{
			ID: st.columnInt(0), Version: st.columnInt(1), Tier: PageTier(st.columnInt(2)), Outline: st.columnInt(3) != 0,
			Seq: st.columnInt(4), Admission: st.columnInt(5), RowVersion: st.columnInt(6),
		})
	})
}

// PageRowVersion gives the version at which a page's title or summary was last
// changed, up to a version of it: the first with the same of both as all that
// follow.
func (s *session) PageRowVersion(page, version int64) (int64, error) {
	found, err := s.ids(sqlPageRowVersion, page, version)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}
