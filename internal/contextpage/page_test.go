package contextpage

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/pager"
)

var update = flag.Bool("update", false, "write the golden files anew")

// emptySample is a scope that was never used.
func emptySample() *pager.Dashboard {
	return &pager.Dashboard{
		Scope: pager.Scope{"harbour-project"}, AtUS: sampleAt,
		Now: pager.DashboardNow{Cost: 33, Budget: pager.DefaultBudget, Unit: pager.UnitBytes, Used: 33.0 / pager.DefaultBudget, CoreCost: 33,
			StablePrefixBytes: 17, TextBytes: 33, Pressure: "low"},
		Pages: []pager.DashboardPage{}, Renders: []pager.RenderEvent{}, Residency: []pager.Movement{},
		Usage: pager.DashboardUsage{Records: []pager.UsageRecord{}, Costs: []pager.UsageCost{}},
		Replacement: pager.Replacement{Policy: pager.Policy{Mode: "manual", EveryN: 10, ThresholdPct: 80, TargetPct: 60, Strategy: "value",
			KeepRecent: 3, HardPct: 95}},
		Warnings: []pager.Warning{},
	}
}

func rendered(t testing.TB, m *pager.Dashboard) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var (
	elements = regexp.MustCompile(`(?s)(<style>|<script[^>]*>)(.*?)(</style>|</script>)`)
	hashes   = regexp.MustCompile(`sha256-[A-Za-z0-9+/=]+`)
)

// TestGolden holds what readers without scripts see.
func TestGolden(t *testing.T) {
	for name, m := range map[string]*pager.Dashboard{"session": sample(false), "empty": emptySample()} {
		t.Run(name, func(t *testing.T) {
			page := rendered(t, m)
			if again := rendered(t, m); again != page {
				t.Error("the same model gave another page")
			}
			got := hashes.ReplaceAllString(elements.ReplaceAllString(page, "$1$3"), "sha256-…")
			file := filepath.Join("testdata", name+".golden.html")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the static part differs from %s; run the test with -update and look at what changed", file)
			}
		})
	}
}

// TestSafety looks at what a page could do to its reader.
func TestSafety(t *testing.T) {
	m := sample(true)
	m.Scope = append(m.Scope, hostile...)
	m.Warnings = append(m.Warnings, pager.Warning{Code: "of another version", Message: hostile[1]})
	m.Replacement.Policy.Provider = hostile[0]
	page := rendered(t, m)
	parts := elements.FindAllStringSubmatch(page, -1)
	if len(parts) != 4 {
		t.Fatalf("%d style and script elements, want 4", len(parts))
	}
	if n := strings.Count(page, "<script"); n != 3 {
		t.Errorf("%d script elements begin, want 3", n)
	}
	policy := regexp.MustCompile(`Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("no content security policy")
	}
	unescaped := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy[1])
	for _, want := range []string{"default-src 'none'", "style-src '" + hash(parts[0][2]) + "'", "script-src '" + hash(parts[3][2]) + "'", "base-uri 'none'"} {
		if !strings.Contains(unescaped, want) {
			t.Errorf("the policy %s lacks %s", unescaped, want)
		}
	}
	tags := regexp.MustCompile(`<[A-Za-z!/][^>]*>`).FindAllString(elements.ReplaceAllString(page, ""), -1)
	for _, tag := range tags {
		for _, bad := range []string{"<img", "onload", "onerror", "onclick", "http", "//", "style=", "src=", "javascript:"} {
			if strings.Contains(tag, bad) && !strings.HasPrefix(tag, "<meta http-equiv=") {
				t.Errorf("%s holds %q", tag, bad)
			}
		}
	}
	for _, name := range []string{"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "Function(", "fetch(", "XMLHttpRequest", "WebSocket", "import("} {
		if strings.Contains(script(), name) {
			t.Errorf("the script uses %s", name)
		}
	}
}

// TestTexts sees to it that both languages say everything, and nothing that
// nobody hears.
func TestTexts(t *testing.T) {
	all, err := words()
	if err != nil {
		t.Fatal(err)
	}
	blank := regexp.MustCompile(`\{\w+\}`)
	used := pageHTML + kitJS + pageJS
	view, err := os.ReadFile("view.go")
	if err != nil {
		t.Fatal(err)
	}
	used += string(view)
	// Keys that are put together from a prefix and a value of the model.
	prefixes := []string{"unit.", "pressure.", "warning.", "mode.", "strategy.", "reason.", "segment."}
	for key, text := range all {
		for i, language := range []string{"English", "Chinese"} {
			if strings.TrimSpace(text[i]) == "" {
				t.Errorf("%s: nothing in %s", key, language)
			}
		}
		en, zh := blank.FindAllString(text[0], -1), blank.FindAllString(text[1], -1)
		slices.Sort(en)
		slices.Sort(zh)
		if !slices.Equal(en, zh) {
			t.Errorf("%s: %v in English, %v in Chinese", key, en, zh)
		}
		made := slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) && strings.Contains(used, `"`+p) })
		if !made && !strings.Contains(used, `"`+key+`"`) && !slices.Contains([]string{"core", "working", "archive"}, key) {
			t.Errorf("%s: nothing uses it", key)
		}
	}
	for _, m := range regexp.MustCompile(`\bt2?\(?[ (]"([a-z0-9_.]+[a-z0-9_])"`).FindAllStringSubmatch(used, -1) {
		if _, ok := all[m[1]]; !ok {
			t.Errorf("there is no text %q", m[1])
		}
	}
}

// TestKnownValues draws every value that the model may have, so that none is
// without words.
func TestKnownValues(t *testing.T) {
	for _, level := range []string{"low", "advisory", "high", "hard"} {
		for _, mode := range []string{"manual", "turns", "threshold", "either"} {
			for _, reason := range []string{"turns", "threshold", "force"} {
				for _, unit := range []pager.Unit{pager.UnitBytes, pager.UnitTokens} {
					m := emptySample()
					m.Now.Pressure, m.Now.Unit = level, unit
					m.Replacement.Policy.Mode, m.Replacement.Policy.Strategy = mode, "lru"
					m.Replacement.State.Last = &pager.PolicyRun{Reason: reason}
					rendered(t, m)
				}
			}
		}
	}
	m := emptySample()
	m.Now.Unit = "ells"
	if err := Render(&bytes.Buffer{}, m); err == nil {
		t.Error("a unit without words was drawn")
	}
	if err := Render(&bytes.Buffer{}, nil); err == nil {
		t.Error("nothing was drawn without an error")
	}
}

func TestBar(t *testing.T) {
	all, err := words()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		core, cost, budget  int
		wantCore, wantWorks float64
	}{{2710, 6021, 8192, 33.1, 40.4}, {33, 33, 8192, 0.4, 0}, {8192, 8192, 8192, 100, 0}, {90, 128, 128, 70.3, 29.7}, {0, 0, 0, 0, 0}} {
		m := emptySample()
		m.Now.CoreCost, m.Now.Cost, m.Now.Budget = c.core, c.cost, c.budget
		w := &writer{words: all}
		b := w.bar(m)
		if w.err != nil || math.Abs(b.Core-c.wantCore) > 1e-9 || math.Abs(b.Working-c.wantWorks) > 1e-9 {
			t.Errorf("%+v: %v and %v, %v", c, b.Core, b.Working, w.err)
		}
	}
	m := emptySample()
	m.Replacement.Policy.TargetPct, m.Replacement.Policy.ThresholdPct, m.Replacement.Policy.HardPct = 60, 70, 100
	b := (&writer{words: all}).bar(m)
	if got := fmt.Sprint(b.Marks); got != "[{60 [mark.target] middle} {70 [mark.advisory mark.threshold] middle} {100 [mark.hard] end}]" {
		t.Errorf("marks %s", got)
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 1234567: "1,234,567"} {
		if got := number(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if share(0.305) != "30.5%" || share(1) != "100%" || rate(nil) != "–" {
		t.Error(share(0.305), share(1), rate(nil))
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWriteFailure(t *testing.T) {
	if err := Render(brokenPipe{}, emptySample()); err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("got %v", err)
	}
}

// TestContrast reckons the contrast of what is read against what it stands on,
// in both themes, by the formula of WCAG 2.2: AA asks for 4.5 of text and for 3
// of marks in a chart.
func TestContrast(t *testing.T) {
	colors := map[string][2]float64{}
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\(#([0-9a-f]{6}), #([0-9a-f]{6})\)`).FindAllStringSubmatch(pageCSS, -1) {
		colors[m[1]] = [2]float64{luminance(t, m[2]), luminance(t, m[3])}
	}
	check := func(least float64, front, back string) {
		f, okF := colors[front]
		b, okB := colors[back]
		if !okF || !okB {
			t.Fatalf("there is no colour %s or %s", front, back)
		}
		for i, theme := range []string{"light", "dark"} {
			hi, lo := max(f[i], b[i]), min(f[i], b[i])
			if c := (hi + 0.05) / (lo + 0.05); c < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", theme, front, back, c, least)
			}
		}
	}
	for _, text := range []string{"ink", "soft"} {
		for _, ground := range []string{"panel", "ground", "plain-ground"} {
			check(4.5, text, ground)
		}
	}
	check(4.5, "panel", "ink")
	check(4.5, "good", "good-ground")
	check(4.5, "warn", "warn-ground")
	check(4.5, "bad", "bad-ground")
	check(4.5, "ink", "bad-ground")
	check(4.5, "lost", "panel")
	for _, mark := range []string{"core", "working", "archive", "reused", "written", "lost", "focus", "strong-line"} {
		check(3, mark, "panel")
	}
	check(3, "core", "free")
	check(3, "working", "free")
	check(3, "archive", "free")
}

// luminance is the relative luminance of a colour of six hexadecimal digits.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
