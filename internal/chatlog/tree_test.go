package chatlog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// gptTree writes a conversation. A node is "name parent children", "-" for
// none.
func gptTree(current string, nodes ...string) string {
	var list []string
	for _, n := range nodes {
		f := strings.Fields(n)
		parent, children := "null", "[]"
		if f[1] != "-" {
			parent = `"` + f[1] + `"`
		}
		if f[2] != "-" {
			children = `["` + strings.ReplaceAll(f[2], ",", `","`) + `"]`
		}
		list = append(list, fmt.Sprintf(`%q:{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":[%q]}},"parent":%s,"children":%s}`,
			f[0], f[0], parent, children))
	}
	return fmt.Sprintf(`[{"id":"c","current_node":%q,"mapping":{%s}}]`, current, strings.Join(list, ","))
}

func TestChatGPTTree(t *testing.T) {
	for _, test := range []struct {
		name, in string
		want     string
		branch   int64
	}{
		{"the current branch", gptTree("b", "r - a,b", "a r c", "b r -", "c a -"), "r b", 2},
		{"the last child", gptTree("", "r - a,b", "a r -", "b r c", "c b -"), "r b c", 1},
		{"a current node that is not there", gptTree("z", "r - a,b", "a r -", "b r -"), "r b", 1},
		{"a current node in the middle", gptTree("a", "r - a", "a r b", "b a -"), "r a", 1},
		{"a child that is not there", gptTree("", "r - a,z", "a r -"), "r a", 0},
		{"a parent that is not there", gptTree("b", "r - -", "a z b", "b a -"), "a b", 1},
		{"no root but an orphan", gptTree("", "a b -", "b z a"), "b a", 0},
		{"a loop upwards", gptTree("b", "a b b", "b a a"), "a b", 0},
		{"a loop downwards", gptTree("", "a b b", "b a a"), "a b", 0},
		{"its own parent", gptTree("a", "a a a"), "a", 0},
		{"its own child", gptTree("", "a - a"), "a", 0},
		{"two roots", gptTree("", "a - -", "b - -"), "a", 1},
		{"the same name twice", gptTree("a", "a - b", "b a -", "a - -"), "a", 1},
		{"a node without a name", strings.ReplaceAll(gptTree("", "r - a", "a r -", "E - -"), `"E":`, `"":`), "r a", 1},
		{"nothing", gptTree("a"), "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, report, err := read(test.in, ChatGPT, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, len(test.in), got, report)
			if diff := cmp.Diff(test.want, texts(got)); diff != "" {
				t.Error(diff)
			}
			if report.LeftOut[Branch] != test.branch {
				t.Errorf("%d messages on other branches, want %d", report.LeftOut[Branch], test.branch)
			}
		})
	}
}

// texts puts the texts of messages together.
func texts(list []Message) string {
	var out []string
	for _, m := range list {
		out = append(out, m.Text)
	}
	return strings.Join(out, " ")
}

func TestClaudeBranches(t *testing.T) {
	conv := func(leaf string, messages ...string) string {
		var list []string
		for _, m := range messages {
			f := strings.Fields(m)
			list = append(list, fmt.Sprintf(`{"uuid":%q,"parent_message_uuid":%q,"text":%q,"sender":"human"}`, strings.Trim(f[0], "-"), strings.Trim(f[1], "-"), f[2]))
		}
		return fmt.Sprintf(`[{"uuid":"c","current_leaf_message_uuid":%q,"chat_messages":[%s]}]`, leaf, strings.Join(list, ","))
	}
	for _, test := range []struct {
		name, in, want string
	}{
		{"one line", conv("", "a 0 A", "b a B", "c b C"), "A B C"},
		{"up from the last message", conv("", "a 0 A", "b a B", "c a C", "d c D"), "A C D"},
		{"up from the current leaf", conv("b", "a 0 A", "b a B", "c a C", "d c D"), "A B"},
		{"a first message that was edited", conv("", "a 0 A", "b a B", "c 0 C"), "C"},
		{"a leaf that is not there", conv("z", "a 0 A", "b 0 B"), "B"},
		{"a link that leads nowhere", conv("", "a 0 A", "b x B", "c a C"), "A B C"},
		{"a message without a link", conv("", "a 0 A", "b - B", "c a C"), "A B C"},
		{"messages without ids", conv("", "- 0 A", "- 0 B"), "A B"},
		{"an id that comes again", conv("", "a 0 A", "a 0 B", "c a C"), "A B C"},
		{"a child before its parent", conv("", "b a B", "a 0 A", "c a C"), "B A C"},
		{"a loop", conv("", "a b A", "b a B"), "A B"},
		{"its own parent", conv("", "a a A", "b a B", "c a C"), "A B C"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, report, err := read(test.in, Claude, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, len(test.in), got, report)
			if diff := cmp.Diff(test.want, texts(got)); diff != "" {
				t.Error(diff)
			}
			if left := int64(strings.Count(test.in, `"sender"`) - len(got)); report.LeftOut[Branch] != left {
				t.Errorf("%d messages on other branches, want %d", report.LeftOut[Branch], left)
			}
		})
	}
}

// TestTreeModel grows random trees and compares with the plain definition: what
// lies between the current node and the root.
func TestTreeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(rt, "nodes")
		parent := make([]int, n)
		children := make([][]string, n)
		for i := 1; i < n; i++ {
			parent[i] = rapid.IntRange(0, i-1).Draw(rt, "parent")
			children[parent[i]] = append(children[parent[i]], fmt.Sprint(i))
		}
		current := rapid.IntRange(-1, n-1).Draw(rt, "current")
		order := rapid.Permutation(seq(n)).Draw(rt, "order")
		var nodes []string
		for _, i := range order {
			up, down := "-", "-"
			if i > 0 {
				up = fmt.Sprint(parent[i])
			}
			if len(children[i]) > 0 {
				down = strings.Join(children[i], ",")
			}
			nodes = append(nodes, fmt.Sprint(i, " ", up, " ", down))
		}
		in := gptTree(fmt.Sprint(current), nodes...)
		at := current
		if at < 0 {
			for at = 0; len(children[at]) > 0; {
				last := children[at][len(children[at])-1]
				fmt.Sscan(last, &at)
			}
		}
		want := fmt.Sprint(at)
		for ; at > 0; at = parent[at] {
			want = fmt.Sprint(parent[at], " ", want)
		}
		got, report, err := read(in, ChatGPT, Limits{})
		if err != nil {
			rt.Fatal(err)
		}
		if texts(got) != want || int(report.LeftOut[Branch]) != n-len(got) {
			rt.Fatalf("got %q, want %q, %d left out of %d", texts(got), want, report.LeftOut[Branch], n)
		}
	})
}

func seq(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
