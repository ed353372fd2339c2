package house

import (
	"go/ast"
	"strings"
)

// pureDirs are the packages of algorithms: what they give depends on their
// arguments alone, which is what makes them easy to fuzz and to reuse.
var pureDirs = []string{
	"internal/text", "internal/rank", "internal/vec", "internal/graph", "internal/render", "internal/lifecycle", "internal/note",
	"internal/redact", "internal/mark", "internal/chatlog", "internal/meta", "internal/valid", "internal/agentfile", "internal/agentpolicy",
	"internal/secretscan",
}

// ioPackages do I/O, carry a context or hold the process's state. An entry
// that ends in a slash stands for everything below it.
var ioPackages = []string{
	"bufio", "context", "crypto/rand", "database/sql", "database/sql/", "expvar", "flag", "io/fs", "io/ioutil", "log", "log/",
	"net", "net/http", "net/http/", "net/rpc", "net/smtp", "os", "os/", "path/filepath", "plugin", "syscall",
	"golang.org/x/sys/",
}

// clockNames are the names in package time that read or wait for the clock.
var clockNames = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// pureMayImport lists the module's own packages that pure ones may use besides
// each other: error codes and the types of the index seam.
var pureMayImport = []string{"internal/errs", "internal/index"}

// surfaces show operations to the world. Each knows op and no other surface.
var surfaces = []string{"internal/cli", "internal/httpapi", "internal/mcpserver"}

// testkit is what tests share: fakes, clocks, child processes that die.
const testkit = "internal/testkit"

// under says whether the directory dir is one of roots or lies below one.
func under(dir string, roots ...string) bool {
	for _, r := range roots {
		if dir == r || strings.HasPrefix(dir, r+"/") {
			return true
		}
	}
	return false
}

// own turns an import path of this module into a directory.
func own(importPath string) (dir string, ok bool) {
	if importPath == Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, Module+"/")
}

func listed(importPath string, list []string) bool {
	for _, e := range list {
		if importPath == e || strings.HasSuffix(e, "/") && strings.HasPrefix(importPath, e) {
			return true
		}
	}
	return false
}

func checkPure(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(false) {
		if !under(f.Dir(), pureDirs...) {
			continue
		}
		timeName := ""
		for _, spec := range f.AST.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if p == "time" {
				timeName = "time"
				if spec.Name != nil {
					timeName = spec.Name.Name
				}
			}
			dir, mine := own(p)
			if listed(p, ioPackages) || mine && !under(dir, pureDirs...) && !listed(dir, pureMayImport) {
				out = append(out, t.at(f, spec.Pos(), "a pure package imports %s", p))
			}
		}
		if timeName == "" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && isPackage(sel.X, timeName) && listed(sel.Sel.Name, clockNames) {
				out = append(out, t.at(f, sel.Pos(), "a pure package reads the clock with time.%s", sel.Sel.Name))
			}
			return true
		})
	}
	return sorted(out)
}

// isPackage says whether x is the name of an imported package rather than a
// variable of that name.
func isPackage(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name && id.Obj == nil
}

func checkLayers(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(true) {
		dir := f.Dir()
		for _, spec := range f.AST.Imports {
			p := strings.Trim(spec.Path.Value, `"`)
			if reason := forbidden(dir, p, f.Test()); reason != "" {
				out = append(out, t.at(f, spec.Pos(), "%s (imports %s)", reason, p))
			}
		}
	}
	return sorted(out)
}

// forbidden says why a file in dir must not import p, or "". Tests may reach
// across layers, to damage a database or to drive a surface, but not upwards
// into cmd.
func forbidden(dir, p string, test bool) string {
	if p == "C" {
		return "the product builds without cgo"
	}
	target, mine := own(p)
	if mine && under(target, "cmd") && !under(dir, "cmd") {
		return "nothing imports cmd"
	}
	if test {
		return ""
	}
	if p == "github.com/ncruces/go-sqlite3" || strings.HasPrefix(p, "github.com/ncruces/go-sqlite3/") {
		if !under(dir, "internal/store") {
			return "only internal/store imports the database driver"
		}
	}
	if !mine {
		return ""
	}
	switch {
	case under(target, testkit) && !under(dir, testkit):
		return "the test kit is for tests"
	case dir == "." && (target == "op" || under(target, surfaces...)):
		return "the root imports no surface"
	case under(dir, "op") && under(target, surfaces...):
		return "the operation table knows no surface"
	case under(dir, "internal/index") && under(target, "internal/store"):
		return "an index never imports the store"
	case under(dir, "internal/store") && (target == "." || under(target, "internal/index/embedded")):
		return "the store imports neither the root nor an index"
	case under(dir, "demo") && target != "." && target != "pager" && !under(target, "demo"):
		return "the demonstration uses the public interface only"
	}
	if from, to := surfaceOf(dir), surfaceOf(target); from != "" && to != "" && from != to {
		return "surfaces never import each other"
	}
	return ""
}

func surfaceOf(dir string) string {
	for _, s := range surfaces {
		if under(dir, s) {
			return s
		}
	}
	return ""
}
