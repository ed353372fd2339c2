package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/setup"
)

// place says which namespace is in force, and why.
func (d *doctor) place() {
	v := d.app.settings.get("namespace")
	d.add("namespace", levelOK, v.Value+": "+d.app.namespaceWhy(v), "")
}

// clients looks at what the clients of this machine have of the memory. One that is
// not set up is worth a note where it is there.
func (d *doctor) clients() {
	e := d.app.setupEnv()
	program, err := d.app.program()
	if err != nil {
		d.add("clients", levelWarning, err.Error(), "Start it by its path.")
		return
	}
	if why := passing(program); why != "" {
		d.add("program", levelNote, program+": "+why, "Install it where it stays; clients start it by its path.")
	}
	var idle []string
	for _, c := range setup.Clients() {
		for _, project := range []bool{false, true} {
			s, ok := c.Look(&e, project)
			switch {
			case !ok || !s.Installed && s.Command == "":
			case s.Problem != "":
				d.add("client "+s.Client, levelWarning, s.Problem, "Mend the file; loci leaves it as it is.")
			case s.Command == "" && len(s.Hooks) == 0:
				if !project {
					idle = append(idle, s.Client)
				}
			default:
				d.client(&c, s, program)
			}
		}
	}
	if len(idle) > 0 {
		d.add("clients", levelNote, "not set up: "+strings.Join(idle, ", "), "Give one the memory with: loci setup "+idle[0])
	}
}

// client looks at one that is set up.
func (d *doctor) client(c *setup.Client, s setup.Status, program string) {
	check := "client " + s.Client
	if level, text := wrongProgram(s, program); text != "" {
		d.add(check, level, text, setupHint(s))
		return
	}
	if len(s.Missing) > 0 {
		d.add(check, levelWarning, "some of its hooks are not set up: "+strings.Join(s.Missing, ", "), setupHint(s))
		return
	}
	text := "set up in " + s.File
	switch {
	case len(s.Hooks) > 0:
		text += ", with hooks"
	case c.HasHooks():
		text += ", without hooks"
	}
	d.add(check, levelOK, text, "")
}

// wrongProgram says what is amiss with the programs that a client starts as its server
// and its hooks, and how much it matters; no text is nothing.
func wrongProgram(s setup.Status, program string) (string, string) {
	for _, path := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(s.HookPaths), s.Command)))) {
		switch {
		case path == "":
			return levelWarning, "its hooks are set up in " + s.HookFile + " and its server is not"
		case !filepath.IsAbs(path):
			return levelNote, "it starts " + path + " by its name alone, which works where its search path finds it"
		}
		if _, err := os.Stat(path); err != nil {
			return levelWarning, "it starts " + path + ", which is not there"
		}
		if !sameFile(path, program) {
			return levelWarning, "it starts " + path + ", and this program is " + program
		}
	}
	return levelOK, ""
}

// sameFile says whether two paths lead to one file.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	left, err := os.Stat(a)
	if err != nil {
		return false
	}
	right, err := os.Stat(b)
	return err == nil && os.SameFile(left, right)
}

// tools checks the tools that models are shown, where the program has any.
func (d *doctor) tools() {
	if d.app.deps.LintTools == nil {
		return
	}
	if err := d.app.deps.LintTools(); err != nil {
		d.add("tools for models", levelTrouble, err.Error(), "This is a mistake in loci; clients may refuse these tools.")
		return
	}
	d.add("tools for models", levelOK, "their schemas are what clients take", "")
}
