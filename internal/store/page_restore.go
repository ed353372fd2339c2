package store

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
