package mcpserver

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
	"pgregory.net/rapid"
)

func TestAnswersKeepToTheirBudget(t *testing.T) {
	caller := op.Local(store(t))
	c := client(t, Config{Caller: caller})
	for i := range 40 {
		must(t, c, "remember", fmt.Sprintf(`{"text":"Lamp %d is lit at seven and put out at dawn by whoever has the watch then.","tags":["lamp"]}`, i))
	}
	must(t, c, "remember", `{"text":"`+strings.Repeat("灯塔的灯每晚七点点亮。", 400)+`"}`)

	whole := must(t, c, "recall", `{"query":"lamp","limit":40,"max_tokens":100000}`)
	if n := len(items(whole.doc, "hits")); n != 40 || whole.doc["left_out"] != nil {
		t.Fatalf("%d hits, left out %v", n, whole.doc["left_out"])
	}
	for _, budget := range []int{100, 300, 1000} {
		a := must(t, c, "recall", fmt.Sprintf(`{"query":"lamp","limit":40,"max_tokens":%d}`, budget))
		kept, left := len(items(a.doc, "hits")), obj(a.doc, "left_out")["hits"]
		if n, err := left.(json.Number).Int64(); err != nil || kept+int(n) != 40 || kept == 0 {
			t.Errorf("%d: %d kept, %v left out", budget, kept, left)
		}
		contains(t, a.text, fmt.Sprintf("%v more hits were left out", left), fmt.Sprintf("(this was %d)", budget))
		raw, err := json.Marshal(a.doc)
		if err != nil {
			t.Fatal(err)
		}
		if n := tokens(raw); n > budget+20 {
			t.Errorf("%d: %d tokens", budget, n)
		}
	}
	a := must(t, c, "recall", `{"query":"灯塔","limit":1,"max_tokens":300}`)
	if text := str(items(a.doc, "hits")[0], "text"); !strings.HasSuffix(text, cutSign) || a.doc["texts_cut"] != true {
		t.Errorf("%s", text)
	}
	contains(t, a.text, "Long texts were cut")
	for _, bad := range []string{"99", "100001", `"x"`} {
		if a := ask(t, c, "recall", `{"query":"lamp","max_tokens":`+bad+`}`); !a.isError || !strings.HasPrefix(a.text, "validation: max_tokens") {
			t.Errorf("%s: %s", bad, a.text)
		}
	}
	// The server's own budget holds where none is asked for.
	small := client(t, Config{Caller: caller, Budget: 100})
	contains(t, must(t, small, "recall", `{"query":"lamp","limit":40}`).text, "(this was 100)")
}

// Cutting takes items from the end only, counts them, and gets below the budget
// whenever items and long texts are all there is.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		item := rapid.Custom(func(t *rapid.T) any {
			return document{
				"id":   json.Number(fmt.Sprint(rapid.IntRange(0, 1<<40).Draw(t, "id"))),
				"text": rapid.StringN(0, 400, 800).Draw(t, "text"),
			}
		})
		lists := []string{"first", "second"}
		doc, before := document{}, map[string][]any{}
		for _, name := range lists {
			list := rapid.SliceOfN(item, 0, 30).Draw(t, name)
			before[name] = list
			doc[name] = append([]any{}, list...)
		}
		budget := rapid.IntRange(minBudget, 20000).Draw(t, "budget")
		fits := size(doc) <= budget
		said := cut(doc, lists, budget)
		if fits != (said == "") {
			t.Fatalf("fits %v, said %q", fits, said)
		}
		left := obj(doc, "left_out")
		for _, name := range lists {
			kept, _ := doc[name].([]any)
			gone, _ := left[name].(int)
			if len(kept)+gone != len(before[name]) || len(before[name]) > 0 && len(kept) == 0 {
				t.Fatalf("%s: %d kept, %d left out of %d", name, len(kept), gone, len(before[name]))
			}
			for i := range kept {
				if kept[i].(document)["id"] != before[name][i].(document)["id"] {
					t.Fatalf("%s: item %d is another one", name, i)
				}
			}
		}
		// What stays at most: one item of each list, and what is said of the others.
		if n := size(doc); n > max(budget, 2*2*shortest)+60 {
			t.Fatalf("%d tokens for %d: %v", n, budget, said)
		}
	})
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 1, "four": 1, "fours": 2, "灯塔": 2, "a 灯塔": 3, "\xff": 1} {
		if got := tokens([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
