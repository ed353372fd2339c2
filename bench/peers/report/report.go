// Package report makes the page of the comparison from the results of its runs:
// the tables and the verdicts between the markers of docs/benchmarks.md, and the
// plots beside it. Nothing on the page that is a figure is written by hand.
package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	pageName = "benchmarks.md" // in the folder of the documents
	partsDir = "benchmarks"    // beside it: results and plots
)

// Write takes files of results, each a result.File as JSON, into the folder of
// documents dir and renews the page there: dir/benchmarks.md between its markers
// and the plots of dir/benchmarks. Results are kept as they are in
// dir/benchmarks, one that is there under the same name being replaced; the page
// tells of all that are kept, so with no files it is only made again.
//
// Nothing is written unless all of it could be made. Results are refused that
// hold a row which no table would show, a figure twice, or figures of one line of
// a table from different runs: those were not measured side by side.
func Write(files []string, dir string) error {
	parts := filepath.Join(dir, partsDir)
	results, err := kept(parts)
	if err != nil {
		return err
	}
	added := map[string][]byte{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("report: %w", err)
		}
		name := filepath.Base(file)
		if filepath.Ext(name) != ".json" {
			return fmt.Errorf("report: %s: a file of results ends in .json", file)
		}
		if _, ok := added[name]; ok {
			return fmt.Errorf("report: two files are named %s", name)
		}
		added[name], results[name] = data, data
	}
	page, err := os.ReadFile(filepath.Join(dir, pageName))
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	made, err := Render(page, results)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(parts, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	for name, data := range added {
		made[path.Join(partsDir, name)] = data
	}
	for name, data := range made {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), data, 0o644); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return removeOldPlots(dir, made)
}

// kept reads the results that a folder keeps, by name. A folder that is not there
// keeps none.
func kept(parts string) (map[string][]byte, error) {
	out := map[string][]byte{}
	names, err := filepath.Glob(filepath.Join(parts, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		out[filepath.Base(name)] = data
	}
	return out, nil
}

// removeOldPlots removes plots that the results no longer give.
func removeOldPlots(dir string, made map[string][]byte) error {
	for _, p := range plots() {
		name := path.Join(partsDir, p.name+".svg")
		if _, ok := made[name]; ok {
			continue
		}
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

// Render gives the page with its blocks renewed, and the plots, by their paths
// below the folder of documents. The same results give the same bytes.
func Render(page []byte, results map[string][]byte) (map[string][]byte, error) {
	v, err := newView(results)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	images := map[string]string{}
	for _, p := range plots() {
		svg := p.draw(v)
		if svg == "" {
			continue
		}
		out[path.Join(partsDir, p.name+".svg")] = []byte(svg)
		images[p.name] = fmt.Sprintf("![%s](%s/%s.svg)\n\n", p.title, partsDir, p.name)
	}
	text := string(page)
	for _, b := range blocks() {
		body := ""
		if len(v.runs) > 0 {
			body = b.make(v)
		}
		if body == "" {
			body = "Not measured yet.\n"
		} else if b.plot != "" {
			body = images[b.plot] + strings.TrimLeft(body, "\n")
		}
		if text, err = replaceBlock(text, b.name, body); err != nil {
			return nil, err
		}
	}
	if err := onlyKnown(text); err != nil {
		return nil, err
	}
	out[pageName] = []byte(text)
	return out, nil
}

// A block is a part of the page that is made.
type block struct {
	name string
	plot string // drawn above it
	make func(v *view) string
}

// blocks gives all of them in the order of the page.
func blocks() []block {
	return []block{
		{"products", "", productsBlock},
		{"settings", "", settingsBlock},
		{"runs", "", runsBlock},
		{"verdicts", "", verdictsBlock},
		{"behind", "", behindBlock},
		{"writing", "writes", writingBlock},
		{"text", "text", textBlock},
		{"vectors", "vectors", vectorsBlock},
		{"hybrid", "hybrid", hybridBlock},
		{"open", "", openBlock},
		{"memory", "memory", memoryBlock},
		{"growth", "growth", growthBlock},
		{"graph", "", graphBlock},
		{"concurrent", "", concurrentBlock},
		{"quality", "quality", qualityBlock},
		{"tenants", "", tenantsBlock},
	}
}

func beginMark(name string) string { return "<!-- begin " + name + " -->\n" }
func endMark(name string) string   { return "<!-- end " + name + " -->\n" }

// replaceBlock puts body between the markers of a block, of which there is one
// pair.
func replaceBlock(text, name, body string) (string, error) {
	begin, end := beginMark(name), endMark(name)
	if strings.Count(text, begin) != 1 || strings.Count(text, end) != 1 {
		return "", fmt.Errorf("report: the page needs one line %q and one %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	before, rest, _ := strings.Cut(text, begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("report: block %s ends before it begins", name)
	}
	return before + begin + "\n" + strings.Trim(body, "\n") + "\n\n" + end + after, nil
}

// onlyKnown refuses a marker that no block belongs to: what stands behind it
// would look made and never be renewed.
func onlyKnown(text string) error {
	known := blocks()
	for l := range strings.Lines(text) {
		name, ok := strings.CutPrefix(l, "<!-- begin ")
		if !ok {
			continue
		}
		name = strings.TrimSuffix(strings.TrimSpace(name), " -->")
		if !slices.ContainsFunc(known, func(b block) bool { return b.name == name }) {
			return fmt.Errorf("report: the page has a block %q that nothing makes", name)
		}
	}
	return nil
}
