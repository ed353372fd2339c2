package agentfile_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/errs"
)

// Every byte that is changed in any way, and every length that is cut, is
// noticed; so is a byte too many.
func TestDamage(t *testing.T) {
	whole := sample().bytes(t)
	for i := range whole {
		damaged := bytes.Clone(whole)
		for _, change := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 255} {
			damaged[i] = whole[i] ^ change
			_, _, err := agentfile.Check(bytes.NewReader(damaged))
			if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), "byte ") {
				t.Fatalf("byte %d changed by %d: %v", i, change, err)
			}
		}
		_, _, err := agentfile.Check(bytes.NewReader(whole[:i]))
		if !errors.Is(err, errs.Validation) || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "the file ends in the middle of") {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
	for _, more := range [][]byte{{0}, whole} {
		_, _, err := agentfile.Check(bytes.NewReader(append(bytes.Clone(whole), more...)))
		if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), "goes on behind its end") {
			t.Errorf("%d bytes more: %v", len(more), err)
		}
	}
}

// Blocks that are whole but not where they were are noticed: the sums go from
// one block to the next.
func TestBlocksMoved(t *testing.T) {
	whole := manyBlocks(t)
	heads := blocks(whole)
	if len(heads) < 5 {
		t.Fatalf("%d blocks", len(heads))
	}
	part := func(from, to int) []byte { return whole[heads[from]:heads[to]] }
	start, end := whole[:heads[0]], whole[heads[3]:]
	for name, b := range map[string][][]byte{
		"in another order": {start, part(1, 2), part(0, 1), part(2, 3), end},
		"one left out":     {start, part(0, 1), part(2, 3), end},
		"one twice":        {start, part(0, 1), part(0, 1), part(1, 3), end},
		"the end early":    {start, part(0, 1), whole[heads[len(heads)-1]:]},
		"nothing":          {start, whole[heads[len(heads)-1]:]},
	} {
		if _, _, err := agentfile.Check(bytes.NewReader(bytes.Join(b, nil))); !errors.Is(err, errs.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// manyBlocks is a file of several blocks of points.
func manyBlocks(t testing.TB) []byte {
	f := &file{Header: agentfile.Header{Kinds: allKinds[:1]}}
	for key := range uint64(20) {
		f.Points = append(f.Points, agentfile.Point{Kind: agentfile.KindFact, Key: key, Version: 1, Content: strings.Repeat("x", 100_000)})
	}
	f.Points[7].Content = strings.Repeat("y", 3_000_000) // one that has a block of its own
	return f.bytes(t)
}

// A block holds 256 KiB, or one record that is longer.
func TestBlocks(t *testing.T) {
	whole := manyBlocks(t)
	le := binary.LittleEndian
	for _, at := range blocks(whole) {
		length, records := le.Uint32(whole[at+4:]), le.Uint32(whole[at+8:])
		if length > 256<<10 && records != 1 {
			t.Errorf("a block of %d records takes %d bytes", records, length)
		}
	}
	got, _, err := read(bytes.NewReader(whole))
	if err != nil || len(got.Points) != 20 || len(got.Points[7].Content) != 3_000_000 {
		t.Error(err)
	}
}

// What no checksum finds is found all the same: the sums are made right again.
func TestStructure(t *testing.T) {
	le := binary.LittleEndian
	whole := sample().bytes(t)
	heads := blocks(whole) // points, versions, edges, end
	points, versions, edges, end := heads[0], heads[1], heads[2], heads[3]
	first := points + headLen + 4 // the first point: kind, flags, key
	for name, c := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"magic":                   {func(b []byte) { b[7] = '2' }, "no agent snapshot"},
		"version 0":               {func(b []byte) { le.PutUint32(b[8:], 0) }, "no version 0"},
		"a long header":           {func(b []byte) { le.PutUint32(b[12:], agentfile.MaxHeaderBytes+1) }, "the header has 1048577 bytes"},
		"a long header, cut":      {func(b []byte) { le.PutUint32(b[12:], agentfile.MaxHeaderBytes) }, "in the middle of the header"},
		"section 0":               {func(b []byte) { b[points] = 0 }, "section 0 behind"},
		"section 5":               {func(b []byte) { b[points] = 5 }, "section 5 behind"},
		"sections in turn":        {func(b []byte) { b[versions] = 1; b[edges] = 1 }, ""},
		"a section that returns":  {func(b []byte) { b[points] = 2; b[versions] = 1 }, ""},
		"edges before versions":   {func(b []byte) { b[versions] = 3; b[edges] = 2 }, ""},
		"the gap in a head":       {func(b []byte) { b[points+2] = 1 }, "a block of section 1"},
		"no records":              {func(b []byte) { le.PutUint32(b[points+8:], 0) }, "without records"},
		"a record fewer":          {func(b []byte) { le.PutUint32(b[points+8:], 2) }, "goes on behind its last record"},
		"a record more":           {func(b []byte) { le.PutUint32(b[points+8:], 4) }, "ends before its last record"},
		"a block of 4 GiB":        {func(b []byte) { le.PutUint32(b[points+4:], 1<<32-1) }, "a block of 3 records takes 4294967295 bytes"},
		"a block too long":        {func(b []byte) { le.PutUint32(b[points+4:], 256<<10+1) }, "a block of 3 records takes 262145 bytes"},
		"a block beyond the end":  {func(b []byte) { le.PutUint32(b[points+4:], 256<<10) }, "in the middle of a block"},
		"a record too long":       {func(b []byte) { le.PutUint32(b[first-4:], 1<<20) }, "does not fit in its block"},
		"a record too short":      {func(b []byte) { le.PutUint32(b[first-4:], le.Uint32(b[first-4:])-1) }, "the record is too short"},
		"a record with more":      {func(b []byte) { le.PutUint32(b[first-4:], le.Uint32(b[first-4:])+1) }, "the record is too long"},
		"no such kind":            {func(b []byte) { b[first] = 11 }, "no such kind"},
		"no such kind, below":     {func(b []byte) { b[first] = 7 }, "no such kind"},
		"a kind not in the file":  {func(b []byte) { b[first] = 9 }, "the header does not name this kind"},
		"a key in a long form":    {func(b []byte) { b[first+2] = 0x80; b[first+3] = 0 }, "not in its shortest form"},
		"flags of a version":      {func(b []byte) { b[versions+headLen+5] |= 1 }, "other flags"},
		"an end with records":     {func(b []byte) { le.PutUint32(b[end+8:], 1) }, "the end has 1 records"},
		"an end of another size":  {func(b []byte) { le.PutUint32(b[end+4:], 48) }, "the end has 0 records and 48 bytes"},
		"a total":                 {func(b []byte) { b[end+headLen] = 3 }, "the end counts 3 where there are 2"},
		"the total of vectors":    {func(b []byte) { b[end+headLen+40] = 9 }, "the end counts 9 where there are 2"},
		"the end's magic":         {func(b []byte) { b[len(b)-1] = 'X' }, "does not end with"},
		"an end before the edges": {func(b []byte) { b[edges] = 4 }, "the end has 4 records"},
	} {
		t.Run(name, func(t *testing.T) {
			b := bytes.Clone(whole)
			c.change(b)
			_, _, err := agentfile.Check(bytes.NewReader(reseal(b)))
			if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "byte ") {
				t.Errorf("%v, not %q", err, c.want)
			}
		})
	}
	if _, _, err := agentfile.Check(bytes.NewReader(reseal(bytes.Clone(whole)))); err != nil {
		t.Errorf("the file itself: %v", err)
	}
}

// A newer file says so, and nothing else: its other bytes may mean anything.
func TestNewerVersion(t *testing.T) {
	b := sample().bytes(t)
	binary.LittleEndian.PutUint32(b[8:], agentfile.Version+1)
	_, _, err := agentfile.Check(bytes.NewReader(reseal(b)[:prefaceLen]))
	if errs.CodeOf(err) != errs.SchemaVersion || !strings.Contains(err.Error(), "newer program") {
		t.Error(err)
	}
}

// withHeader gives the sample with another text for a header.
func withHeader(t *testing.T, header string) []byte {
	whole := sample().bytes(t)
	rest := whole[blocks(whole)[0]:]
	b := append(bytes.Clone(whole[:prefaceLen]), header...)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(header)))
	return reseal(append(b, rest...))
}

func TestHeader(t *testing.T) {
	whole := sample().bytes(t)
	header := string(whole[prefaceLen:blocks(whole)[0]])
	if _, _, err := agentfile.Check(bytes.NewReader(withHeader(t, " "+header+" "))); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`{"namespace":"team"`, `{"namespace":"team","namespace":"team"`, "unknown or comes twice"},
		{`{"namespace"`, `{"Namespace"`, "unknown or comes twice"},
		{`{"namespace"`, `{"name":1,"namespace"`, "unknown or comes twice"},
		{`"namespace":"team",`, ``, "has no namespace"},
		{`"team"`, "\"\xff\"", "not valid JSON"},
		{`"team"`, `null`, "namespace is of the wrong form"},
		{`"team"`, `7`, "namespace is of the wrong form"},
		{`"dimension":3`, `"dimension":3.5`, "dimension is of the wrong form"},
		{`"dimension":3`, `"dimension":-1`, "the header's dimension -1"},
		{`"dimension":3`, `"dimension":65537`, "the header's dimension 65537"},
		{`"dimension":3`, `"dimension":1e30`, "dimension is of the wrong form"},
		{`"fact","procedure"`, ``, "names no kind"},
		{`"fact","procedure"`, `"procedure","fact"`, "kinds are not"},
		{`"fact","procedure"`, `"fact","fact"`, "kinds are not"},
		{`"fact","procedure"`, `"fact","page"`, "kinds are not"},
		{`"fact","procedure"`, `null`, "kinds are not"},
		{`"settings":{"keep_versions":10,"t":"<\u00e9>"}`, `"settings":[10]`, "settings is not a JSON object"},
		{`"settings":{`, `"settings":null,"x":{`, "settings is of the wrong form"},
		{`{"namespace"`, `["namespace"`, "not valid JSON"},
		{header, `[]`, "not a JSON object"},
		{header, ``, "not valid JSON"},
		{header, header + header, "not valid JSON"},
	} {
		changed := strings.Replace(header, c.old, c.new, 1)
		if changed == header {
			t.Fatalf("%s is not in the header", c.old)
		}
		_, _, err := agentfile.Check(bytes.NewReader(withHeader(t, changed)))
		if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s instead of %s: %v", c.new, c.old, err)
		}
	}
	for name, h := range map[string]agentfile.Header{
		"no kind":            {},
		"a kind twice":       {Kinds: []string{"fact", "fact"}},
		"a negative number":  {Kinds: allKinds, Dimension: -1},
		"too many numbers":   {Kinds: allKinds, Dimension: agentfile.MaxDimension + 1},
		"no UTF-8":           {Kinds: allKinds, Scope: "\xff"},
		"settings: a number": {Kinds: allKinds, Settings: json.RawMessage(`1`)},
		"settings: cut":      {Kinds: allKinds, Settings: json.RawMessage(`{`)},
		"settings: long":     {Kinds: allKinds, Settings: json.RawMessage(`{"a":"` + strings.Repeat("x", agentfile.MaxHeaderBytes) + `"}`)},
	} {
		if _, err := agentfile.NewWriter(io.Discard, &h); !errors.Is(err, errs.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rule is a way to break a rule, and what is said about it.
type rule struct {
	change func(f *file)
	want   string
}

func rules() map[string]rule {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	return map[string]rule{
		"points: keys out of order":  {func(f *file) { f.Points[0].Key, f.Points[1].Key = 2, 1 }, "fact 1 comes behind fact 2"},
		"points: one twice":          {func(f *file) { f.Points[1].Key = 0 }, "fact 0 comes behind fact 0"},
		"points: kinds out of order": {func(f *file) { f.Points[0].Kind = "procedure" }, "fact 18446744073709551615 comes behind procedure 0"},
		"points: another kind":       {func(f *file) { f.Points[2].Kind = "page" }, "a kind that there is not"},
		"points: a kind not held":    {func(f *file) { f.Points[2].Kind = "episode" }, "the header does not name this kind"},
		"points: title":              {func(f *file) { f.Points[0].Title = "\xff" }, "title is not UTF-8"},
		"points: content":            {func(f *file) { f.Points[0].Content = "a\xc3" }, "content is not UTF-8"},
		"points: thread":             {func(f *file) { f.Points[0].Thread = "\xed\xa0\x80" }, "thread is not UTF-8"},
		"points: a tag":              {func(f *file) { f.Points[0].Tags[1] = "\x80" }, "a tag is empty or not UTF-8"},
		"points: an empty tag":       {func(f *file) { f.Points[0].Tags[0] = "" }, "a tag is empty or not UTF-8"},
		"points: many tags":          {func(f *file) { f.Points[0].Tags = make([]string, agentfile.MaxTags+1) }, "tags, more than"},
		"points: metadata an array":  {func(f *file) { f.Points[0].Metadata = json.RawMessage(`[]`) }, "metadata is not a JSON object"},
		"points: metadata null":      {func(f *file) { f.Points[0].Metadata = json.RawMessage(`null`) }, "metadata is not a JSON object"},
		"points: metadata blank":     {func(f *file) { f.Points[0].Metadata = json.RawMessage(` `) }, "metadata is not a JSON object"},
		"points: metadata two":       {func(f *file) { f.Points[0].Metadata = json.RawMessage(`{}{}`) }, "metadata is not a JSON object"},
		"points: metadata no UTF-8":  {func(f *file) { f.Points[0].Metadata = json.RawMessage("{\"a\":\"\xff\"}") }, "metadata is not a JSON object"},
		"points: data":               {func(f *file) { f.Points[0].Data = json.RawMessage(`"a"`) }, "data is not a JSON object or array"},
		"points: evidence":           {func(f *file) { f.Points[0].Evidence = json.RawMessage(`[1`) }, "evidence is not a JSON object or array"},
		"points: confidence high":    {func(f *file) { f.Points[0].Confidence = 1.0000000000000002 }, "the confidence 1.0000000000000002"},
		"points: confidence low":     {func(f *file) { f.Points[0].Confidence = -1e-300 }, "the confidence -1e-300"},
		"points: confidence NaN":     {func(f *file) { f.Points[0].Confidence = math.NaN() }, "the confidence NaN"},
		"points: successes":          {func(f *file) { f.Points[2].Successes = 301 }, "301 successes of 300 uses"},
		"points: negative uses":      {func(f *file) { f.Points[2].Uses, f.Points[2].Successes = -1, -1 }, "-1 successes of -1 uses"},
		"points: negative successes": {func(f *file) { f.Points[2].Successes = -1 }, "-1 successes of 300 uses"},
		"points: version 0":          {func(f *file) { f.Points[2].Version = 0 }, "the version 0 is below 1"},
		"points: vector too short":   {func(f *file) { f.Points[0].Vector = []float32{1, 2} }, "the vector has 2 numbers, the header says 3"},
		"points: vector too long":    {func(f *file) { f.Points[0].Vector = make([]float32, 4) }, "the vector has 4 numbers, the header says 3"},
		"points: NaN":                {func(f *file) { f.Points[0].Vector[1] = nan }, "a number that is not finite"},
		"points: infinite":           {func(f *file) { f.Points[0].Vector[2] = inf }, "a number that is not finite"},
		"points: zeros":              {func(f *file) { f.Points[1].Vector = []float32{0, float32(math.Copysign(0, -1)), 0} }, "the vector is all zeros"},
		"points: a fingerprint":      {func(f *file) { f.Points[2].VectorText = 1 }, "a vector's fingerprint without a vector"},
		"versions: out of order":     {func(f *file) { f.Versions[0].Version = 3 }, "version 2 of fact 0 comes behind version 3 of fact 0"},
		"versions: one twice":        {func(f *file) { f.Versions[1].Version = 1 }, "version 1 of fact 0 comes behind version 1 of fact 0"},
		"versions: kinds":            {func(f *file) { f.Versions[0] = f.Versions[2] }, "version 2 of fact 0 comes behind version 1 of procedure 7"},
		"versions: of nothing":       {func(f *file) { f.Versions[2].Key = 8 }, "version 1 of procedure 8: there is no such point"},
		"versions: another kind":     {func(f *file) { f.Versions[2].Kind = "" }, "a kind that there is not"},
		"versions: a kind not held":  {func(f *file) { f.Versions[0].Kind = "episode" }, "the header does not name this kind"},
		"versions: version 0":        {func(f *file) { f.Versions[0].Version = 0 }, "the version 0 is below 1"},
		"versions: title":            {func(f *file) { f.Versions[0].Title = "\xff" }, "title is not UTF-8"},
		"versions: content":          {func(f *file) { f.Versions[0].Content = "\xff" }, "content is not UTF-8"},
		"versions: data":             {func(f *file) { f.Versions[0].Data = json.RawMessage(`1`) }, "data is not a JSON object or array"},
		"versions: metadata":         {func(f *file) { f.Versions[0].Metadata = json.RawMessage(`[]`) }, "metadata is not a JSON object"},
		"edges: one twice":           {func(f *file) { f.Edges[1] = f.Edges[0] }, "from fact 0 to fact 18446744073709551615 comes behind"},
		"edges: from":                {func(f *file) { f.Edges[0], f.Edges[3] = f.Edges[3], f.Edges[0] }, "comes behind the one from procedure 7"},
		"edges: type":                {func(f *file) { f.Edges[0].Type = "\U0010ffff" }, "from fact 0 to episode 4 comes behind"},
		"edges: to": {func(f *file) {
			f.Edges[0].ToKind, f.Edges[0].To, f.Edges[0].Type = "procedure", 7, f.Edges[1].Type
		}, "from fact 0 to episode 4 comes behind the one from fact 0 to procedure 7"},
		"edges: from nothing":   {func(f *file) { f.Edges[0].From, f.Edges[1].From = 3, 3 }, "there is no fact 3"},
		"edges: to nothing":     {func(f *file) { f.Edges[0].To = 3 }, "there is no fact 3"},
		"edges: of others only": {func(f *file) { f.Edges[2].ToKind = "episode" }, "the file holds neither kind"},
		"edges: another kind":   {func(f *file) { f.Edges[0].ToKind = "page" }, "a kind that there is not"},
		"edges: no type":        {func(f *file) { f.Edges[0].Type = "" }, "it has no type"},
		"edges: a type's bytes": {func(f *file) { f.Edges[3].Type = "\xff" }, "type is not UTF-8"},
		"edges: properties":     {func(f *file) { f.Edges[0].Properties = json.RawMessage(`[]`) }, "properties is not a JSON object"},
	}
}

// A Writer refuses what breaks a rule, and names the point.
func TestWriterRefuses(t *testing.T) {
	for name, r := range rules() {
		t.Run(name, func(t *testing.T) {
			f := sample()
			r.change(f)
			_, err := f.write(io.Discard)
			if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), r.want) {
				t.Errorf("%v, not %q", err, r.want)
			}
		})
	}
}

// A Reader refuses it too, in a file that was written without a look at it.
func TestReaderRefuses(t *testing.T) {
	others := map[string]string{ // what cannot even be said in a record
		"points: another kind":       "no such kind",
		"points: many tags":          "too many tags",
		"points: negative uses":      "a number is too large",
		"points: negative successes": "a number is too large",
		"points: vector too short":   "the record is too short",
		"points: vector too long":    "the record is too long",
		"versions: another kind":     "no such kind",
		"edges: another kind":        "no such kind",
	}
	for name, r := range rules() {
		if name == "points: a fingerprint" {
			continue // has no place in a file
		}
		want := cmp.Or(others[name], r.want)
		t.Run(name, func(t *testing.T) {
			f := sample()
			r.change(f)
			var b bytes.Buffer
			out, err := agentfile.NewWriter(&b, &f.Header)
			if err != nil {
				t.Fatal(err)
			}
			for i := range f.Points {
				err = cmp.Or(err, out.UncheckedPoint(&f.Points[i]))
			}
			for i := range f.Versions {
				err = cmp.Or(err, out.UncheckedVersion(&f.Versions[i]))
			}
			for i := range f.Edges {
				err = cmp.Or(err, out.UncheckedEdge(&f.Edges[i]))
			}
			if _, closed := out.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			_, _, err = agentfile.Check(&b)
			if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ", byte ") {
				t.Errorf("%v, not %q", err, want)
			}
		})
	}
}

// A file whose dimension is 0 has no vectors, not even those of no numbers.
func TestNoVectors(t *testing.T) {
	h := agentfile.Header{Kinds: allKinds}
	p := agentfile.Point{Kind: agentfile.KindFact, Version: 1, Vector: []float32{1}}
	var b bytes.Buffer
	out, err := agentfile.NewWriter(&b, &h)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.UncheckedPoint(&p); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := agentfile.Check(&b); !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), "without vectors") {
		t.Error(err)
	}
	if out, err = agentfile.NewWriter(io.Discard, &h); err != nil {
		t.Fatal(err)
	}
	if err := out.Point(&p); !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), "the header says 0") {
		t.Error(err)
	}
}

// Sections do not come back, and a Writer that refused stays so.
func TestSectionsInOrder(t *testing.T) {
	f := sample()
	for name, late := range map[string]func(w *agentfile.Writer) error{
		"a point behind an edge":   func(w *agentfile.Writer) error { return w.Point(&f.Points[2]) },
		"a version behind an edge": func(w *agentfile.Writer) error { return w.Version(&f.Versions[0]) },
	} {
		out, err := agentfile.NewWriter(io.Discard, &f.Header)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(out.Point(&f.Points[0]), out.Point(&f.Points[1]), out.Edge(&f.Edges[0])); err != nil {
			t.Fatal(err)
		}
		err = late(out)
		if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), "too late") {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := out.Close(); again != err {
			t.Errorf("%s: closed with %v", name, again)
		}
	}
}

// A record over the limit is refused before it is written.
func TestRecordTooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("takes memory")
	}
	out, err := agentfile.NewWriter(io.Discard, &agentfile.Header{Kinds: allKinds})
	if err != nil {
		t.Fatal(err)
	}
	p := agentfile.Point{Kind: agentfile.KindFact, Version: 1, Content: strings.Repeat("x", agentfile.MaxRecordBytes-100)}
	if err := out.Point(&p); err != nil {
		t.Fatal(err)
	}
	p.Key, p.Content = 1, p.Content+strings.Repeat("x", 100)
	if err := out.Point(&p); !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), "a record takes 671") {
		t.Error(err)
	}
}

// allocated is how many bytes f makes room for.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A length that is a lie takes no memory but for one block.
func TestHostileLengths(t *testing.T) {
	le := binary.LittleEndian
	whole := sample().bytes(t)
	points := blocks(whole)[0]
	for name, change := range map[string]func(b []byte) []byte{
		"header": func(b []byte) []byte { le.PutUint32(b[12:], agentfile.MaxHeaderBytes); return b },
		"block": func(b []byte) []byte {
			le.PutUint32(b[points+4:], agentfile.MaxRecordBytes)
			le.PutUint32(b[points+8:], 1)
			return b
		},
		"records":  func(b []byte) []byte { le.PutUint32(b[points+8:], 1<<32-1); return b },
		"record":   func(b []byte) []byte { le.PutUint32(b[points+headLen:], 1<<32-1); return b },
		"text":     func(b []byte) []byte { return hostile(t, b, "\x1bThe harbour closes at nine.") },
		"tags":     func(b []byte) []byte { return hostile(t, b, "\x02\x07harbour") },
		"a tag":    func(b []byte) []byte { return hostile(t, b, "\x07harbour") },
		"metadata": func(b []byte) []byte { return hostile(t, b, `{ "b"`, -1) },
	} {
		b := reseal(change(bytes.Clone(whole)))
		var err error
		if n := allocated(func() { _, _, err = agentfile.Check(bytes.NewReader(b)) }); n > 1<<20 {
			t.Errorf("%s: takes %d bytes", name, n)
		}
		if !errors.Is(err, errs.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// hostile puts a number of ten bytes over the file, from where find begins.
func hostile(t *testing.T, b []byte, find string, shift ...int) []byte {
	at := bytes.Index(b, []byte(find))
	if at < 0 {
		t.Fatalf("%q is not in the file", find)
	}
	for _, n := range shift {
		at += n
	}
	copy(b[at:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
	return b
}

// Writing and reading take the memory of a block, not that of the file.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	const points = 20_000
	p := agentfile.Point{Kind: agentfile.KindFact, Version: 1, Content: strings.Repeat("x", 2000)}
	var b bytes.Buffer
	b.Grow(points * 2100)
	n := allocated(func() {
		out, err := agentfile.NewWriter(&b, &agentfile.Header{Kinds: allKinds})
		if err != nil {
			t.Fatal(err)
		}
		for p.Key = range points {
			if err := out.Point(&p); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := out.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if n > 2<<20 {
		t.Errorf("writing %d bytes takes %d", b.Len(), n)
	}
	in, err := agentfile.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var most uint64
	for n := 0; ; n++ {
		if _, err := in.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if n%2000 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc-min(m.HeapAlloc, uint64(b.Cap())))
		}
	}
	if most > 16<<20 {
		t.Errorf("reading holds %d bytes", most)
	}
}
