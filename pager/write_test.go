package pager

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestWriteReplacesAll holds that a write is a whole revision: what it leaves out
// takes its default, but for tier and outline, and that one like the current
// revision makes none.
func TestWriteReplacesAll(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "other", Content: "to be linked"})
	whole := WriteRequest{PageID: "p", Content: "text", Title: "title", Summary: "in short", Tags: []string{" Zebra", "apple", "zebra", ""},
		Importance: new(0.0), Source: "here", Links: []string{"other", "other"}, Tier: Core, PinReason: "the goal"}
	made := must[*WriteResult](t)(cs.Write(t.Context(), whole))
	want := Reference{PageID: "p", Version: 1, Tier: Core, Mode: "full", Seq: 1, Title: "title", Summary: "in short", Tags: []string{"apple", "zebra"},
		Bytes: 4, Source: "here", Links: []string{"other"}, PinReason: "the goal"}
	same := cmp.Options{cmpopts.IgnoreUnexported(Reference{}), cmpopts.IgnoreFields(Reference{}, "CreatedAtUS", "UpdatedAtUS")}
	if d := cmp.Diff(want, made.Page, same); d != "" || !made.Created || !made.Changed {
		t.Errorf("%+v\n%s", made, d)
	}
	before := snapshot(t, cs)
	whole.ExpectedVersion, whole.Tier, whole.PinReason = new(int64(1)), "", ""
	again := must[*WriteResult](t)(cs.Write(t.Context(), whole))
	if d := cmp.Diff(want, again.Page, same); d != "" || again.Created || again.Changed {
		t.Errorf("%+v\n%s", again, d)
	}
	if now := snapshot(t, cs); now.Epoch != before.Epoch || now.Generation != before.Generation {
		t.Errorf("a write that changed nothing moved %+v to %+v", before, now)
	}
	bare := must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "p", Content: "text", ExpectedVersion: new(int64(1))}))
	want = Reference{PageID: "p", Version: 2, Tier: Core, Mode: "full", Seq: 1, Tags: []string{}, Bytes: 4, Importance: 0.5, PinReason: "the goal"}
	if d := cmp.Diff(want, bare.Page, same); d != "" || bare.Created || !bare.Changed {
		t.Errorf("%+v\n%s", bare, d)
	}
	if got := must[*HistoryResult](t)(cs.History(t.Context(), HistoryRequest{PageID: "p"})).Versions; len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestWriteVersions goes through which version has to be expected of what.
func TestWriteVersions(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "p", Content: "one"})
	put(t, cs, WriteRequest{PageID: "p", Content: "two", ExpectedVersion: new(int64(1))})
	for _, c := range []struct {
		id       string
		expected *int64
		code     Code
	}{
		{"", nil, ""}, {"", new(int64(0)), ""}, {"", new(int64(1)), ErrInvalidArgument},
		{"new", nil, ""}, {"newer", new(int64(0)), ""}, {"newest", new(int64(1)), ErrNotFound},
		{"p", nil, ErrVersionConflict}, {"p", new(int64(0)), ErrVersionConflict}, {"p", new(int64(1)), ErrVersionConflict},
		{"p", new(int64(3)), ErrVersionConflict}, {"p", new(int64(-1)), ErrInvalidArgument}, {"p", new(int64(2)), ""},
	} {
		name := c.id + " expecting none"
		if c.expected != nil {
			name = fmt.Sprintf("%s expecting %d", c.id, *c.expected)
		}
		out, err := cs.Write(t.Context(), WriteRequest{PageID: c.id, Content: "three", ExpectedVersion: c.expected})
		switch {
		case c.code == "" && err != nil:
			t.Errorf("%q: %v", name, err)
		case c.code == "" && out.Created != (c.id != "p"):
			t.Errorf("%q: %+v", name, out)
		case c.code != "" && !errors.Is(err, c.code):
			t.Errorf("%q: %v", name, err)
		case c.code == ErrVersionConflict && errorOf(err).Details["current"] != int64(2):
			t.Errorf("%q: %v", name, errorOf(err).Details)
		}
	}
}

func errorOf(err error) *Error {
	e, _ := errors.AsType[*Error](err)
	return e
}

// TestWriteOutline takes pages into the outline and out of it again.
func TestWriteOutline(t *testing.T) {
	cs := openScope(t, Config{})
	write := func(req WriteRequest) (Reference, error) {
		t.Helper()
		if ref, err := cs.Read(t.Context(), ReadRequest{PageID: req.PageID}); err == nil {
			req.ExpectedVersion = &ref.CurrentVersion
		}
		req.Content = "body"
		out, err := cs.Write(t.Context(), req)
		if err != nil {
			return Reference{}, err
		}
		return out.Page, nil
	}
	row := WriteRequest{PageID: "r", Title: "step", Summary: "done", Outline: new(true)}
	expect := func(req WriteRequest, tier Tier, mode string, seq, version int64) {
		t.Helper()
		got, err := write(req)
		if err != nil || got.Tier != tier || got.Mode != mode || got.Seq != seq || got.Version != version {
			t.Errorf("%+v: %+v %v", req, got, err)
		}
	}
	refuse := func(req WriteRequest, code Code) {
		t.Helper()
		if _, err := write(req); !errors.Is(err, code) {
			t.Errorf("%+v: %v", req, err)
		}
	}
	alter := func(change func(*WriteRequest)) WriteRequest {
		req := row
		change(&req)
		return req
	}
	refuse(alter(func(r *WriteRequest) { r.Title = "" }), ErrOutlineInvalid)
	refuse(alter(func(r *WriteRequest) { r.Summary = "" }), ErrOutlineInvalid)
	refuse(alter(func(r *WriteRequest) { r.Title = strings.Repeat("t", MaxOutlineTitleBytes+1) }), ErrOutlineInvalid)
	refuse(alter(func(r *WriteRequest) { r.Summary = strings.Repeat("汉", MaxOutlineSummaryBytes/3) + "s" }), ErrOutlineInvalid)
	refuse(alter(func(r *WriteRequest) { r.Tier = Working }), ErrOutlineInvalid)
	expect(row, Core, "index", 1, 1)
	// The row stays one while outline is left out, and must keep what makes one.
	expect(alter(func(r *WriteRequest) { r.Outline, r.Summary = nil, "done again" }), Core, "index", 1, 2)
	refuse(alter(func(r *WriteRequest) { r.Outline, r.Summary = nil, "" }), ErrOutlineInvalid)
	refuse(alter(func(r *WriteRequest) { r.Outline, r.Tier = nil, Archive }), ErrOutlineInvalid)
	refuse(alter(func(r *WriteRequest) { r.PageID, r.Links = "s", []string{"s"} }), ErrLinkInvalid)
	// Out of the outline: the archive, or the tier that is given. The text is the
	// same as before, so that there is no revision.
	same := alter(func(r *WriteRequest) { r.Outline, r.Summary = new(false), "done again" })
	expect(same, Archive, "full", 0, 2)
	expect(alter(func(r *WriteRequest) { r.Summary = "done again" }), Core, "index", 2, 2)
	same.Tier = Working
	expect(same, Working, "full", 0, 2)
	same.Tier = ""
	expect(same, Working, "full", 0, 2) // outline false of a page that is none keeps its tier
	for i := range MaxOutlineRows {
		expect(alter(func(r *WriteRequest) { r.PageID = fmt.Sprint("row", i) }), Core, "index", int64(3+i), 1)
	}
	_, err := write(alter(func(r *WriteRequest) { r.PageID = "one-more" }))
	if e := errorOf(err); e == nil || e.Code != ErrOutlineFull || e.Details["rows"] != MaxOutlineRows || e.Details["limit"] != MaxOutlineRows || !strings.Contains(e.Message, "fold") {
		t.Errorf("%v", err)
	}
	expect(alter(func(r *WriteRequest) { r.PageID, r.Summary = "row7", "changed" }), Core, "index", 10, 2)
}

// TestWriteLinks holds the order of links, and what may be linked.
func TestWriteLinks(t *testing.T) {
	cs := openScope(t, Config{})
	var all []string
	for i := range MaxLinks + 1 {
		all = append(all, fmt.Sprint("l", i))
		put(t, cs, WriteRequest{PageID: all[i], Content: "text"})
	}
	slices.Reverse(all)
	got := must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "p", Content: "text", Links: all[1:]}))
	if !slices.Equal(got.Page.Links, all[1:]) {
		t.Errorf("%v", got.Page.Links)
	}
	for _, links := range [][]string{all, {"p"}, {"nobody"}, {"l1", "memory:1"}, {""}} {
		_, err := cs.Write(t.Context(), WriteRequest{PageID: "p", Content: "text", Links: links, ExpectedVersion: new(int64(1))})
		if !errors.Is(err, ErrLinkInvalid) {
			t.Errorf("%q: %v", links, err)
		}
	}
	swapped := append([]string{all[2], all[1]}, all[3:]...)
	if got := put(t, cs, WriteRequest{PageID: "p", Content: "text", Links: swapped, ExpectedVersion: new(int64(1))}); got.Version != 2 {
		t.Errorf("another order of links is no change: %+v", got)
	}
}

// TestPinReason holds that a reason goes with core and with nothing else.
func TestPinReason(t *testing.T) {
	cs := openScope(t, Config{})
	for _, tier := range []Tier{"", Working, Archive} {
		_, err := cs.Write(t.Context(), WriteRequest{Content: "text", Tier: tier, PinReason: "why"})
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != ErrInvalidArgument || e.Field != "pin_reason" {
			t.Errorf("tier %q: %v", tier, err)
		}
	}
	put(t, cs, WriteRequest{PageID: "p", Content: "text", Tier: Core, PinReason: "why"})
	_, err := cs.Write(t.Context(), WriteRequest{PageID: "p", Content: "text", Tier: Working, PinReason: "why", ExpectedVersion: new(int64(1))})
	if !errors.Is(err, ErrInvalidArgument) {
		t.Error(err)
	}
	row := put(t, cs, WriteRequest{Title: "step", Summary: "done", Content: "text", Outline: new(true), PinReason: "a trail"})
	if row.PinReason != "a trail" {
		t.Errorf("%+v", row)
	}
}
