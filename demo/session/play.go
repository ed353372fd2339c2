package session

import (
	"fmt"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/pager"
)

// The kinds of changes that the summary tells apart.
const (
	kindSetUp   = "first text"
	kindAppend  = "new working page"
	kindEdit    = "working page edited"
	kindRecall  = "recall"
	kindOutline = "new outline row"
	kindCompact = "working page compacted"
	kindPin     = "pinned to core"
	kindUnpin   = "unpinned from core"
	kindCore    = "core page edited"
	kindOut     = "working page put out"
	kindRestore = "restored a checkpoint"
	kindFold    = "outline folded"
	kindPolicy  = "run of the policy"
	kindNone    = "nothing that is rendered"
)

// play is the session: an agent looks for the reason why a tide table is an hour
// late.
func (p *player) play() {
	p.out.title("An agent's session of forty steps")
	p.out.para(fmt.Sprintf("The window holds %s bytes. Rules and goal are core, what tools say goes to working, each turn leaves a row in the outline. "+
		"Before every call of the model the window is read; the figures say how much of its text a prompt cache still had.", count(Budget)))
	p.out.line("")
	p.out.head()
	p.setUp()
	p.firstTurns()
	p.middle()
	p.wait(12 * time.Minute)
	p.out.line("")
	p.out.note("twelve minutes pass, and the provider's cache grows cold")
	p.lastTurns()
}

func (p *player) setUp() {
	if p.err != nil {
		return
	}
	_, p.err = p.cs.SetPolicy(p.ctx, pager.SetPolicyRequest{
		Mode: new("either"), EveryN: new(5), ThresholdPct: new(85), TargetPct: new(60), KeepRecent: new(2), Provider: new(profile),
	})
	p.does(kindSetUp, "rules and goal", func() error {
		for _, w := range []pager.WriteRequest{
			{PageID: "rules", Title: "Rules of the house", Tier: pager.Core, Importance: new(1.0), PinReason: "holds for the whole session",
				Content: "Answer in the language of the question. Say what was measured and how. Never change data that other programs read " +
					"without a copy of it. Ask before anything leaves this machine."},
			{PageID: "goal", Title: "Goal", Tier: pager.Core, Importance: new(1.0),
				Content: "Find out why the tide table shows high water an hour late since Sunday."},
		} {
			if _, err := p.cs.Write(p.ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *player) firstTurns() {
	p.says("the tide table is an hour late since Sunday. Why?")
	p.tool("importer.go", "read_file", code("importer"))
	p.tool("time zones", "grep", "importer.go:41 loc := time.FixedZone(\"harbour\", 3600)\nimporter.go:88 t = t.In(loc)\ntable.go:17 // times are local\n"+
		"table.go:53 high.Format(\"15:04\")\nstation.go:29 Zone string // IANA name of the station's zone")
	p.row("step-1", "Read the importer", "importer.go converts with a fixed zone of one hour; station.go knows a zone name that nobody uses")

	p.says("go on")
	p.tool("git log", "git_log", "a41c02 importer: keep the zone in one place\n77e9d1 table: columns for neap and spring\n5b0c33 station: names of zones\n"+
		"0de8f4 importer: read the harbour's file as it is, without guessing")
	p.write("plan", "计划", kindAppend, "write plan", "1. 比较周六与周日的潮时。\n2. 查看导入器使用的时区。\n3. 写一个能重现问题的测试。")
	p.write("plan", "计划", kindEdit, "write plan, version 2", "1. 比较周六与周日的潮时。已完成：相差正好一小时。\n2. 查看导入器使用的时区。进行中。\n3. 写一个能重现问题的测试。")
	p.row("step-2", "Compared the days", "周六与周日的潮时相差正好一小时")

	p.says("could it be the station's own clock?")
	p.tool("station log", "ssh station", events("station-3", 8))
	p.tool("tide file", "http_get", events("tide-file", 7))
	p.recall("zone of the station", 2)
	p.row("step-3", "Ruled out the station", "the station's clock agrees with the harbour's to the second")
}

func (p *player) middle() {
	p.says("then it is the importer")
	p.tool("test run", "go test", events("go-test", 12))
	p.compact("the test run", "TestImport fails on the last Sunday of March: want 06:12, got 07:12. All others pass.")
	p.does(kindPin, "page_in time zones, tier core", func() error {
		id, err := p.find("time zones")
		if err != nil {
			return err
		}
		_, err = p.cs.PageIn(p.ctx, pager.PageInRequest{PageID: id, Tier: pager.Core, Reason: "where the fault lies"})
		return err
	})
	p.row("step-4", "Reproduced it", "a test fails on the day on which summer time begins: the zone is fixed, so the hour is added twice")

	p.says("what did the log say about zones?")
	p.recall("git log of the importer", 2)
	p.tool("zone data", "zdump", events("zdump", 6))
	p.does(kindCore, "write goal, version 2", func() error {
		_, err := p.cs.Write(p.ctx, pager.WriteRequest{PageID: "goal", Title: "Goal", ExpectedVersion: new(int64(1)), Importance: new(1.0),
			Content: "Make the importer use the station's own zone, so that summer time does not move the tide."})
		return err
	})
	p.row("step-5", "Changed the goal", "目标改为：使用站点自己的时区")
}

func (p *player) lastTurns() {
	p.says("I am back. Where were we?")
	p.recall("plan", 2)
	p.tool("patch", "edit_file", code("patch"))
	p.recall("station log", 1)
	p.row("step-6", "Wrote the patch", "importer.go loads the station's zone by its name and keeps it")

	p.says("try it without the table's own offset")
	var checkpoint loci.ID
	p.does(kindNone, "checkpoint", func() error {
		c, err := p.cs.Checkpoint(p.ctx, pager.CheckpointRequest{Label: "before the attempt"})
		if err == nil {
			checkpoint = c.Checkpoint.CheckpointID
		}
		return err
	})
	p.tool("attempt", "edit_file", code("attempt"))
	p.write("plan", "计划", kindEdit, "write plan, version 3", "1. 去掉表格自己的偏移。\n2. 重新计算全部潮时。")
	p.does(kindRestore, "restore the checkpoint", func() error {
		_, err := p.cs.Restore(p.ctx, pager.RestoreRequest{CheckpointID: checkpoint})
		return err
	})

	p.says("that was a dead end. Tidy up")
	p.does(kindOut, "page_out the patch", func() error {
		id, err := p.find("patch")
		if err != nil {
			return err
		}
		_, err = p.cs.PageOut(p.ctx, pager.PageOutRequest{PageID: id})
		return err
	})
	p.does(kindUnpin, "unpin time zones", func() error {
		id, err := p.find("time zones")
		if err != nil {
			return err
		}
		out, err := p.cs.Unpin(p.ctx, pager.UnpinRequest{PageID: id})
		if err == nil {
			p.putOut(out.Evicted)
		}
		return err
	})
	p.tool("test run 2", "go test", events("go-test", 9))
	p.row("step-7", "Took a dead end back", "表格自己的偏移必须保留")

	p.says("fold what is behind us")
	p.does(kindFold, "fold, keep 3", func() error {
		out, err := p.cs.Fold(p.ctx, pager.FoldRequest{Keep: new(3)})
		if err == nil && !out.Changed {
			err = fmt.Errorf("nothing was folded: %s", out.Reason)
		}
		return err
	})
	p.recall("patch", 1)
	p.does(kindNone, "read the milestone's first step", func() error {
		_, err := p.cs.Read(p.ctx, pager.ReadRequest{PageID: "step-1"})
		return err
	})
	p.row("step-8", "Patched again", "importer.go and table.go agree on the station's zone")

	p.says("is it done?")
	p.tool("test run 3", "go test", "ok  harbour/importer  0.41s\nok  harbour/table  0.12s\nok  harbour/station  0.09s")
	p.row("step-9", "Done", "all tests pass; high water is right on both sides of the change")
}

// tool is a result of a tool, which goes to working.
func (p *player) tool(title, name, content string) {
	p.does(kindAppend, "write “"+title+"”", func() error {
		out, err := p.cs.Write(p.ctx, pager.WriteRequest{Title: title, Content: content, Tier: pager.Working, Tags: []string{"tool"}, Source: name})
		if err == nil {
			p.putOut(out.Evicted)
		}
		return err
	})
}

// write makes a working page or replaces the revision that it has.
func (p *player) write(id, title, kind, what, content string) {
	p.does(kind, what, func() error {
		version, err := p.version(id)
		if err != nil {
			return err
		}
		out, err := p.cs.Write(p.ctx, pager.WriteRequest{PageID: id, Title: title, Content: content, Tier: pager.Working, Importance: new(0.8), ExpectedVersion: &version})
		if err == nil {
			p.putOut(out.Evicted)
		}
		return err
	})
}

// row adds a row to the outline.
func (p *player) row(id, title, summary string) {
	p.does(kindOutline, "outline “"+title+"”", func() error {
		out, err := p.cs.Write(p.ctx, pager.WriteRequest{PageID: id, Title: title, Summary: summary, Outline: new(true),
			Content: title + ". " + summary + "."})
		if err == nil {
			p.putOut(out.Evicted)
		}
		return err
	})
}

// recall looks for pages and brings them into the window.
func (p *player) recall(query string, limit int) {
	p.does(kindRecall, "recall “"+query+"”", func() error {
		out, err := p.cs.Recall(p.ctx, pager.RecallRequest{SearchRequest: pager.SearchRequest{Query: query, Limit: &limit}})
		if err == nil {
			p.putOut(out.Evicted)
		}
		return err
	})
}

// compact shortens the page that was written last.
func (p *player) compact(what, summary string) {
	p.does(kindCompact, "compact "+what, func() error {
		id, err := p.find(strings.TrimPrefix(what, "the "))
		if err != nil {
			return err
		}
		version, err := p.version(id)
		if err != nil {
			return err
		}
		_, err = p.cs.Compact(p.ctx, pager.CompactRequest{PageID: id, Summary: summary, ExpectedVersion: &version})
		return err
	})
}

// find gives the id of the newest page with a title.
func (p *player) find(title string) (string, error) {
	status, err := p.cs.Status(p.ctx, pager.StatusRequest{Limit: new(1000)})
	if err != nil {
		return "", err
	}
	id := ""
	for i := range status.Pages {
		if status.Pages[i].Title == title {
			id = status.Pages[i].PageID
		}
	}
	if id == "" {
		return "", fmt.Errorf("there is no page %q", title)
	}
	return id, nil
}

// version is the version of a page, 0 while there is none.
func (p *player) version(id string) (int64, error) {
	status, err := p.cs.Status(p.ctx, pager.StatusRequest{Limit: new(1000)})
	if err != nil {
		return 0, err
	}
	for i := range status.Pages {
		if status.Pages[i].PageID == id {
			return status.Pages[i].Version, nil
		}
	}
	return 0, nil
}

// events are lines as a log has them.
func events(what string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "03:%02d:%02d %s %d: high water 0%d:%02d, %d mm\n", i*7%60, i*13%60, what, i+1, i%9, i*17%60, 4100+i*37)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// code is a piece of a program.
func code(what string) string {
	return map[string]string{
		"importer": "func (im *Importer) read(r io.Reader) ([]Tide, error) {\n\tloc := time.FixedZone(\"harbour\", 3600)\n\tfor sc.Scan() {\n" +
			"\t\tt, err := time.Parse(layout, sc.Text())\n\t\tif err != nil {\n\t\t\treturn nil, err\n\t\t}\n\t\ttides = append(tides, Tide{At: t.In(loc)})\n\t}\n" +
			"\treturn tides, sc.Err()\n}",
		"patch": "-\tloc := time.FixedZone(\"harbour\", 3600)\n+\tloc, err := time.LoadLocation(station.Zone)\n+\tif err != nil {\n" +
			"+\t\treturn nil, fmt.Errorf(\"zone of %s: %w\", station.Name, err)\n+\t}",
		"attempt": "-\thigh := tide.At.Add(table.offset)\n+\thigh := tide.At",
	}[what]
}
