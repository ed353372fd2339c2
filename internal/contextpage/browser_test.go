package contextpage

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// browser finds Chromium. Where CHROMIUM names one, it has to work: that is how
// continuous integration makes sure that these tests run.
func browser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes its time")
	}
	if name := os.Getenv("CHROMIUM"); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("CHROMIUM: %v", err)
		}
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium, chromium-browser or google-chrome is installed, and CHROMIUM names none")
	return ""
}

// browse opens a file in Chromium, with no name to be found on any network, and
// gives the document as it is then and what was written to the console. What it
// looks like goes to a file of that name.
func browse(t *testing.T, file, picture string, flags ...string) (dom string, console []string) {
	t.Helper()
	path := browser(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	flags = append([]string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--host-resolver-rules=MAP * ~NOTFOUND", "--user-data-dir=" + t.TempDir(), "--enable-logging=stderr",
		"--virtual-time-budget=4000", "--dump-dom", "--screenshot=" + filepath.Join(t.ArtifactDir(), picture),
	}, flags...)
	cmd := exec.CommandContext(ctx, path, append(flags, "file://"+filepath.ToSlash(file))...)
	var out, log strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, ":CONSOLE") {
			console = append(console, line)
		}
	}
	return out.String(), console
}

// probed is a page with the probe in it.
func probed(t *testing.T, page string) string {
	t.Helper()
	probe, err := os.ReadFile("testdata/probe.js")
	if err != nil {
		t.Fatal(err)
	}
	text := "(() => {" + string(probe) + "})();"
	const policy, head = "script-src &#39;", `<meta name="viewport"`
	if strings.Count(page, policy) != 1 || strings.Count(page, head) != 1 {
		t.Fatal("the page has no place for the probe")
	}
	page = strings.Replace(page, policy, "script-src &#39;"+hash(text)+"&#39; &#39;", 1)
	return strings.Replace(page, head, "<script>"+text+"</script>"+head, 1)
}

// finding is what the probe tells.
type finding struct {
	Name               string
	Width, ScrollWidth int
	Wide, Problems     []string
	Lang, Scheme       string
	Ground, Heading    string
	Text               string
	Requests, Columns  int
	PageRows, Faults   int
	LedgerRows         int
	Violations         int
	Harmed             bool
	Did                deeds
}

type deeds struct {
	First, Second, Last  string
	MostHits, FewestHits []int
	Sorted, Pressed      string
	FocusKept            bool
	Core, None, All      int
	More, OnlyFaults     int
	Kept                 int
	Before, Toggled      []string
}

var probes = regexp.MustCompile(`(?s)<pre id="probes">(.*?)</pre>`)

// frames shows pages side by side, each in a frame of its own width, as a
// window of Chromium is not as narrow as a phone, and gives what their probes
// tell.
func frames(t *testing.T, picture string, list []frame) (found map[string]finding, console []string) {
	t.Helper()
	dir := t.TempDir()
	var body strings.Builder
	total := 0
	for i, f := range list {
		file := fmt.Sprintf("%d.html", i)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(probed(t, f.page)), 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&body, `<iframe name="%s" src="%s#%s" width="%d" height="4200"></iframe>`, f.name, file, f.hash, f.width)
		total += f.width + 20
	}
	const around = `<!doctype html><meta charset="utf-8"><style>body{margin:8px;display:flex;gap:16px;background:#888}iframe{border:0;flex:none}</style>%s<pre id="probes"></pre>
<script>addEventListener("message", (e) => { document.getElementById("probes").textContent += e.data + "\n"; });</script>`
	file := filepath.Join(dir, "frames.html")
	if err := os.WriteFile(file, fmt.Appendf(nil, around, body.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, console := browse(t, file, picture, fmt.Sprintf("--window-size=%d,4300", total))
	m := probes.FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("no probe told anything: %.2000s", dom)
	}
	found = map[string]finding{}
	for line := range strings.Lines(html.UnescapeString(m[1])) {
		var f finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%v: %.500s", err, line)
		}
		found[f.Name] = f
	}
	for _, f := range list {
		if _, ok := found[f.name]; !ok {
			t.Fatalf("%s: its probe told nothing", f.name)
		}
	}
	return found, console
}

type frame struct {
	name, page, hash string
	width            int
}

const phone, desk = 360, 1200

// TestBrowser opens the page as a reader would: on a desk and on a phone, in
// both languages and both themes, full, hostile and empty.
func TestBrowser(t *testing.T) {
	browser(t)
	m, full, empty := sample(false), sample(true), emptySample()
	session, big, none := rendered(t, m), rendered(t, full), rendered(t, empty)
	list := []frame{
		{"light desk", session, "en&amp;light", desk}, {"dark desk", session, "zh&amp;dark", desk},
		{"light phone", session, "zh&amp;light", phone}, {"dark phone", session, "en&amp;dark", phone},
		{"big phone", big, "zh&amp;dark", phone}, {"big desk", big, "en&amp;light", desk},
		{"empty phone", none, "zh&amp;light", phone},
	}
	found, console := frames(t, "dashboard.png", list)
	if len(console) > 0 {
		t.Errorf("the pages wrote to the console: %q", console)
	}
	for _, f := range list {
		got := found[f.name]
		zh, dark := strings.HasPrefix(f.hash, "zh"), strings.HasSuffix(f.hash, "dark")
		if got.Width != f.width || got.ScrollWidth > got.Width {
			t.Errorf("%s: %d px of content in %d px: %q", f.name, got.ScrollWidth, got.Width, got.Wide)
		}
		if len(got.Problems) > 0 || got.Harmed || got.Requests != 0 || got.Violations != 0 {
			t.Errorf("%s: harmed %v, %d requests, problems %q", f.name, got.Harmed, got.Requests, got.Problems)
		}
		if heading := map[bool]string{false: "Context window", true: "上下文窗口"}[zh]; got.Heading != heading || (got.Lang == "zh-Hans") != zh {
			t.Errorf("%s: heading %q, language %s", f.name, got.Heading, got.Lang)
		}
		if ground := map[bool]string{false: "rgb(245, 246, 248)", true: "rgb(14, 17, 21)"}[dark]; got.Ground != ground {
			t.Errorf("%s: the ground is %s, want %s", f.name, got.Ground, ground)
		}
		d := got.Did
		if len(d.Before) != 2 || len(d.Toggled) != 3 || d.Before[0] == d.Toggled[0] || d.Before[1] == d.Toggled[1] {
			t.Errorf("%s: the buttons led from %q to %q", f.name, d.Before, d.Toggled)
		}
	}
	for _, name := range []string{"light desk", "dark desk", "light phone", "dark phone"} {
		got, d := found[name], found[name].Did
		if got.PageRows != len(m.Pages) || got.LedgerRows != len(m.Residency) || got.Columns < len(m.Renders) || got.Faults == 0 {
			t.Errorf("%s: %d pages, %d movements, %d columns, %d faults", name, got.PageRows, got.LedgerRows, got.Columns, got.Faults)
		}
		if d.Core != 9 || d.None != 0 || d.All != len(m.Pages) || d.OnlyFaults != got.Faults || d.Kept != got.Faults || d.Pressed != "true" {
			t.Errorf("%s: filters gave %+v", name, d)
		}
		if !slices.IsSorted(d.FewestHits) || slices.IsSorted(d.MostHits) || d.Sorted != "ascending" || len(d.MostHits) != len(m.Pages) || !d.FocusKept {
			t.Errorf("%s: sorting gave %+v", name, d)
		}
	}
	if d := found["light desk"].Did; !strings.Contains(d.First, "Generation 1 ") || !strings.Contains(d.First, "first") || !strings.Contains(d.Second, "Generation 2 ") ||
		!strings.Contains(d.Last, "Generation 48 ") || !strings.Contains(d.Last, "write w47") {
		t.Errorf("the timeline reads %q, %q, %q", d.First, d.Second, d.Last)
	}
	for name, sentences := range map[string][]string{
		"light desk":  {"simulated accounting", "Simulated accounting: 16 of 48 calls", "6,021 of 8,192 bytes", "The outline has 29 of 32 rows"},
		"dark desk":   {"模拟记帐", "模拟记帐：48 次调用中有 16 次", "大纲已有 29 行", "换页账本", "缺页"},
		"empty phone": {"这里还没有内容", "尚无调用记录", "没有页面", "尚无页面换层"},
	} {
		for _, s := range sentences {
			if !strings.Contains(found[name].Text, s) {
				t.Errorf("%s: does not say %q", name, s)
			}
		}
	}
	for _, name := range []string{"big phone", "big desk"} {
		if d := found[name].Did; found[name].PageRows != 50 || d.More != len(full.Pages) {
			t.Errorf("%s: %d pages, then %d of %d", name, found[name].PageRows, d.More, len(full.Pages))
		}
		for _, s := range []string{hostile[0], hostile[1], hostile[5]} {
			if !strings.Contains(found[name].Text, s) {
				t.Errorf("%s: the title %q is not shown as it is", name, s)
			}
		}
	}
}

// TestProbe sees to it that the probe finds what it is there to find.
func TestProbe(t *testing.T) {
	browser(t)
	page := rendered(t, sample(false))
	harmful := strings.Replace(page, "<footer", `<img src="https://example.org/x.png" alt=""><p onclick="harm()">.</p><script>window.harmed=1</script><div class="wide">`+
		strings.Repeat("W", 500)+`</div><svg></svg><button></button><footer`, 1)
	found, console := frames(t, "probe.png", []frame{{"harmful", harmful, "en", phone}})
	got := found["harmful"]
	if len(console) == 0 {
		t.Error("what the policy blocks is not on the console")
	}
	if got.Violations < 3 || got.Harmed || got.ScrollWidth <= got.Width {
		t.Errorf("%d violations, harmed %v, %d px in %d", got.Violations, got.Harmed, got.ScrollWidth, got.Width)
	}
	for _, want := range []string{"policy: img-src", "policy: script-src", "a picture without words", "without a name"} {
		if !slices.ContainsFunc(got.Problems, func(p string) bool { return strings.HasPrefix(p, want) }) {
			t.Errorf("the probe did not find %q: %q", want, got.Problems)
		}
	}
}

// TestPreferences opens the page without a choice in its address: it follows
// the language and the theme of the reader's system.
func TestPreferences(t *testing.T) {
	browser(t)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(rendered(t, sample(false))), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ language, want, theme string }{{"zh-CN", `data-lang="zh"`, "浅色"}, {"de-DE", `data-lang="en"`, "Light"}} {
		dom, console := browse(t, file, c.language+".png", "--window-size=1200,4200", "--accept-lang="+c.language, "--lang="+c.language, "--blink-settings=preferredColorScheme=0")
		if len(console) > 0 || !strings.Contains(dom, c.want) || !regexp.MustCompile(`id="theme"[^>]*>`+c.theme+`<`).MatchString(dom) {
			t.Errorf("%s: console %q; the page begins %.300s", c.language, console, dom)
		}
	}
}

// TestNoScript opens the page in a frame in which no script may run: the key
// figures are there all the same, and what is missing says so.
func TestNoScript(t *testing.T) {
	browser(t)
	const around = `<!doctype html><meta charset="utf-8"><iframe width="1180" height="2300" sandbox="allow-same-origin" srcdoc="%s"></iframe>
<pre id="probes"></pre><script>addEventListener("load", () => {
  document.getElementById("probes").textContent = document.querySelector("iframe").contentDocument.body.innerText;
});</script>`
	file := filepath.Join(t.TempDir(), "frame.html")
	page := fmt.Appendf(nil, around, html.EscapeString(rendered(t, sample(false))))
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	dom, _ := browse(t, file, "no-script.png", "--window-size=1200,2400")
	text := probes.FindStringSubmatch(dom)
	if text == nil {
		t.Fatalf("the frame says nothing: %.600s", dom)
	}
	for _, want := range []string{"73.5%", "2,694", "89.4%", "simulated accounting 65.4%", "This part needs JavaScript"} {
		if !strings.Contains(text[1], want) {
			t.Errorf("without scripts the page does not say %q", want)
		}
	}
	for _, absent := range []string{"Dark", "预算", "Generation 48"} {
		if strings.Contains(text[1], absent) {
			t.Errorf("without scripts the page says %q", absent)
		}
	}
}
