package main

import "github.com/loci-memory/loci"

// importSamples come last: what they bring in would stand among the hits of others.
var importSamples = []sample{
	{op: "import_from", input: `{"from":"markdown","path":"{notes}/crew.md","namespace":"crew","dry_run":true}`,
		args: []string{"import", "--from", "markdown", "{notes}/crew.md", "--namespace", "crew", "--dry-run"}, want: `"created":1`},
	{op: "import_from", input: `{"from":"markdown","path":"{notes}/crew.md","namespace":"crew"}`,
		args: []string{"import-from", "markdown", "{notes}/crew.md", "--namespace", "crew"}, want: `"dry_run":false`},
	{op: "import_from", input: `{"from":"markdown","path":"{notes}/crew.md","namespace":"crew"}`,
		args: []string{"import", "--from", "markdown", "{notes}/crew.md", "--namespace", "crew"}, want: `"unchanged":1`},
	{op: "import_from", input: `{"from":"p-memory","path":"{notes}/crew.md"}`,
		args: []string{"import", "--from", "p-memory", "{notes}/crew.md"}, code: loci.ErrValidation},
	{op: "import_from", input: `{"from":"nowhere","path":"{notes}/crew.md"}`,
		args: []string{"import", "--from", "nowhere", "{notes}/crew.md"}, code: loci.ErrValidation},
}

// forgetImport takes out of an import's receipt the store's revision: where a store
// is opened for each call, vectors are made in between.
func forgetImport(m map[string]any) {
	if m["kinds"] != nil && m["unlisted"] != nil {
		delete(m, "revision")
	}
}
