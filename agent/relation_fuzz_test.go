package agent

import (
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// FuzzCursors holds that a cursor which is taken is one that a page could have given.
func FuzzCursors(f *testing.F) {
	for _, seed := range []string{"", "fact/1/causes", "episode/18446744073709551615/a/b", "1/fact/2", "0/procedure/0", "fact/01/a", "/", "fact//a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		if at, err := parseEdgeCursor(cursor); err == nil && at != nil {
			e := Edge{ToKind: publicKind(at.kind), To: loci.PointID(at.key), FromKind: publicKind(at.kind), From: loci.PointID(at.key), Type: at.typ}
			if out, in := edgeCursor(&e, store.EdgesOut), edgeCursor(&e, store.EdgesIn); out != cursor || in != cursor {
				t.Errorf("%q became %q and %q", cursor, out, in)
			}
			if checkRelType(at.typ) != nil {
				t.Errorf("%q is of a type that no relation has", cursor)
			}
		}
		if at, err := parseMatchCursor(cursor); err == nil && at != nil {
			m := Match{Edge: Edge{From: loci.PointID(at.from), ToKind: publicKind(at.toKind), To: loci.PointID(at.to)}}
			if got := matchCursor(&m); got != cursor {
				t.Errorf("%q became %q", cursor, got)
			}
		}
	})
}
