package valid

import (
	"slices"
	"strings"
	"testing"
)

func TestLabel(t *testing.T) {
	for s, right := range map[string]bool{
		"a": true, "港务": true, "a b": true, strings.Repeat("x", 10): true,
		"": false, " a": false, "a ": false, "a\nb": false, "a\x00": false, "\xff": false, strings.Repeat("x", 11): false,
	} {
		if err := Label("f", s, 10); (err == nil) != right {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestText(t *testing.T) {
	for s, right := range map[string]bool{"": true, "line\nline": true, strings.Repeat("x", 10): true, strings.Repeat("x", 11): false, "\xff": false} {
		if err := Text("f", s, 10); (err == nil) != right {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestTags(t *testing.T) {
	got, err := Tags("f", []string{" NOVA ", "ｎｏｖａ", "机器   学习", " "}, 3, 20)
	if err != nil || !slices.Equal(got, []string{"nova", "机器 学习"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range [][]string{{"a", "b", "c", "d"}, {strings.Repeat("x", 21)}, {"\xff"}, {"a\x01b"}} {
		if got, err := Tags("f", bad, 3, 20); err == nil {
			t.Errorf("%q was taken as %q", bad, got)
		}
	}
}
