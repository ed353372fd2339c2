package agentfile

// UncheckedPoint writes a point that may break every rule.
func (f *Writer) UncheckedPoint(p *Point) error {
	if err := f.enter(sectionPoints, "a point"); err != nil {
		return err
	}
	return f.add(func(b []byte) []byte { return appendPoint(b, p) })
}

// UncheckedVersion writes a version that may break every rule.
func (f *Writer) UncheckedVersion(v *PointVersion) error {
	if err := f.enter(sectionVersions, "a version"); err != nil {
		return err
	}
	return f.add(func(b []byte) []byte { return appendVersion(b, v) })
}

// UncheckedEdge writes a relation that may break every rule.
func (f *Writer) UncheckedEdge(e *Edge) error {
	if err := f.enter(sectionEdges, "a relation"); err != nil {
		return err
	}
	return f.add(func(b []byte) []byte { return appendEdge(b, e) })
}
