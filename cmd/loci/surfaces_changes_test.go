package main

import "github.com/loci-memory/loci"

// changeSamples come before all others: how far the journal is afterwards differs,
// since a surface that opens the store for each call makes its vectors in between.
var changeSamples = []sample{
	{op: "changes", input: `{}`, args: []string{"changes"}, want: `"items":[]`},
	{op: "changes", input: `{"after":"99","kinds":["memory"]}`, args: []string{"changes", "--after", "99", "--kinds", "memory"}, want: `"floor_lost":true`},
	{op: "changes", input: `{"after":"yesterday"}`, args: []string{"changes", "--after", "yesterday"}, code: loci.ErrValidation},
	{op: "changes", input: `{"wait_ms":30001}`, args: []string{"changes", "--wait-ms", "30001"}, code: loci.ErrValidation},
}
