package main

import "github.com/loci-memory/loci"

// intakeSamples are the calls of what comes in from models and their clients, in a
// namespace of their own.
var intakeSamples = []sample{
	{op: "intake", input: `{"namespace":"in","source":"log","judgments":[{"text":"The pier is closed.","tags":["pier"]},{"text":" "}],"triples":[{"subject":"Eve","predicate":"paints","object":"Boat"}],"dry_run":true}`,
		want: `"dry_run":true`},
	{op: "intake", input: `{"namespace":"in","source":"log","judgments":[{"text":"The pier is closed.","tags":["pier"]},{"text":"the PIER is closed."},{"text":" "}],"triples":[{"subject":"Eve","predicate":"paints","object":"Boat"},{"subject":"","predicate":"paints","object":"Boat"}]}`,
		args: []string{"intake", "--namespace", "in", "--source", "log", "--judgments", `[{"text":"The pier is closed.","tags":["pier"]},{"text":"the PIER is closed."},{"text":" "}]`,
			"--triples", `[{"subject":"Eve","predicate":"paints","object":"Boat"},{"subject":"","predicate":"paints","object":"Boat"}]`},
		want: `"created":2`},
	{op: "intake", input: `{"namespace":"in","scope":""}`, code: loci.ErrValidation},
	{op: "episodes.capture", input: `{"namespace":"in","dimension":2,"thread":"s1","messages":[{"id":"a","role":"user","text":"Is the pier open?","at_us":1000000},{"id":"b","role":"assistant","text":"It is closed."}]}`,
		args: []string{"episodes", "capture", "--namespace", "in", "--dimension", "2", "--thread", "s1", "--messages",
			`[{"id":"a","role":"user","text":"Is the pier open?","at_us":1000000},{"id":"b","role":"assistant","text":"It is closed."}]`},
		want: `"stored":2`},
	{op: "episodes.capture", input: `{"namespace":"in","thread":"s1","messages":[{"id":"b","role":"assistant","text":"It is closed."}]}`, want: `"unchanged":1`},
	{op: "episodes.capture", input: `{"namespace":"in","thread":"s1","messages":[{"id":"","role":"user","text":"x"}]}`, code: loci.ErrValidation},
	{op: "episodes.last", input: `{"namespace":"in","thread":"s1"}`, args: []string{"episodes", "last", "s1", "--namespace", "in"}, want: `"description":"It is closed."`},
	{op: "episodes.last", input: `{"namespace":"in","thread":"none"}`, want: `"point":null`},
	{op: "episodes.last", input: `{"namespace":"in","thread":""}`, code: loci.ErrValidation},
}
