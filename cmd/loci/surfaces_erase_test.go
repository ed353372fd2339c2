package main

import "github.com/loci-memory/loci"

// eraseSamples come behind all others, whose records they erase.
var eraseSamples = []sample{
	{op: "erase", input: `{}`, args: []string{"erase", "--yes"}, code: loci.ErrValidation},
	{op: "erase", input: `{"filter":{"namespace":"default"}}`, args: []string{"erase", "--namespace", "default", "--yes"}, code: loci.ErrValidation},
	{op: "erase", input: `{"filter":{"namespace":"default","scopes":["public"]},"every_scope":true}`, code: loci.ErrValidation},
	{op: "erase", input: `{"all":true,"erase_mentions":true}`, code: loci.ErrValidation},
	{op: "erase", input: `{"all":true,"mentions":[" "]}`, code: loci.ErrValidation},
	{op: "erase", input: `{"all":true,"subject":""}`, args: []string{"erase", "--subject", "", "--yes"}, code: loci.ErrValidation},
	{op: "erase", input: `{"all":true,"ids":[]}`, args: []string{"erase", "--ids", "", "--yes"}, code: loci.ErrValidation},
	{op: "memories.delete_by_filter", input: `{"all":true,"filter":{"tags":[]}}`, args: []string{"memories", "delete-by-filter", "--all", "--tags", ""}, code: loci.ErrValidation},
	{op: "erase", input: `{"all":true,"ids":[0]}`, code: loci.ErrValidation},
	{op: "erase", input: `{"subject":"nobody","all":true,"dry_run":true}`, args: []string{"erase", "--subject", "nobody", "--dry-run"}, want: `"total":0`},
	{op: "erase", input: `{"subject":"nobody","all":true}`, args: []string{"erase", "--subject", "nobody", "--yes"}, want: `"what":"backups"`},
	{op: "erase", input: `{"filter":{"namespace":"default"},"every_scope":true,"mentions":["tide"],"dry_run":true}`,
		args: []string{"erase", "--namespace", "default", "--every-scope", "--mentions", "tide", "--dry-run"}, want: `"dry_run":true`},
	{op: "erase", input: `{"filter":{"namespace":"default"},"every_scope":true}`,
		args: []string{"erase", "--namespace", "default", "--every-scope", "--yes"}, want: `"agent_memories":4`},
	{op: "erase", input: `{"filter":{"namespace":"ship"},"every_scope":true}`, want: `"contexts":1`},
	{op: "erase", input: `{"filter":{"namespace":"ship"},"every_scope":true}`, want: `"total":0`},
	{op: "vacuum", input: `{}`, args: []string{"vacuum"}, want: `"not_reached":[]`},
	{op: "vacuum", input: `{"deep":true}`, code: loci.ErrValidation},
}

// forgetReceipt drops what of the receipts of erasures and vacuums differs between
// surfaces: one that opens the store for each call writes the index out in between.
func forgetReceipt(m map[string]any) {
	if m["not_reached"] == nil {
		return
	}
	for _, name := range []string{"revision", "vectors", "journal_rows", "before", "after"} {
		delete(m, name)
	}
}
