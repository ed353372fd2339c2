package loci

import "testing"

// TestGraphLoops declares sameness in a ring and rules that name each other:
// both come to an end and count everything once.
func TestGraphLoops(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	c := newChart(t, db).entities("a", "b", "c", "d")
	c.relate("a", PredicateSameAs, "b")
	c.relate("b", PredicateSameAs, "c")
	c.relate("c", PredicateSameAs, "a")
	c.relate("a", PredicateSameAs, "a")
	c.relate("b", "knows", "d")
	c.wantCounts(2, 1, 1)
	c.wantEgo("c", 1, "d")
	c.wantPath("c", "d", "a", "d")
	c.wantStrong()

	c = newChart(t, db)
	c.ns = "rules"
	c.entities("小满", "老柳", "阿青")
	c.rule(PredicateRule{Namespace: "rules", Predicate: "师父", Inverse: "徒弟"})
	c.rule(PredicateRule{Namespace: "rules", Predicate: "徒弟", Inverse: "师父"})
	c.relate("小满", "师父", "老柳")
	c.relate("老柳", "徒弟", "阿青")
	c.wantCounts(3, 4, 1)
	c.wantEgo("老柳", 1, "小满", "阿青")
	c.wantEgo("阿青", 2, "老柳", "小满")
	c.wantStrong([]string{"小满", "老柳", "阿青"})
	// A rule whose inverse is itself says the same as a symmetric one.
	c = newChart(t, db)
	c.ns = "self"
	c.entities("x", "y")
	c.rule(PredicateRule{Namespace: "self", Predicate: "twin of", Inverse: "twin of"})
	c.relate("x", "twin of", "y")
	c.wantCounts(2, 2, 1)
	c.wantEgo("y", 1, "x")
}
