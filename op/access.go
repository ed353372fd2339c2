package op

// Who may call what. A caller whose context carries a loci.Access reaches what its
// grants cover, and every row is of one of three sorts:
//
//   - It takes a namespace, in its input or in the filter there, and the store
//     itself refuses what the grants do not cover, before it looks at anything. Scopes
//     are named beside it. What belongs to a namespace as a whole, its rules, switches,
//     note files and the figures over all of its scopes, takes a grant for every scope
//     of it. Where the namespace may be left out for the whole store (a rule, a
//     sync of embeddings), leaving it out needs admin.
//   - It is Spec.Admin: about the store as a whole, such as spaces of vectors, the
//     index and backups, or about files of the machine that the store is on, so that
//     every row that takes a path of it is of this sort. Call refuses it without
//     admin. Admin grants no namespace: a row that is of both sorts needs both.
//   - It touches no record, and is listed in NoPlace with the reason.
//
// notes.upsert_file and notes.sync_dir read files too, but only below the root that an
// admin has set for the namespace, so they are of the first sort.

// NoPlace lists the operations that need neither admin nor a grant, each with the
// reason. A test holds that every other row is Admin or takes a namespace.
func NoPlace() map[string]string {
	return map[string]string{
		"chunk_text":          "works on the text it is given and reads nothing that is stored",
		"reranker_registered": "says how the server is set up, which holds for whatever search is allowed",
		"health":              "counts what the caller may read; the rest of it, and the deep check, need admin",
	}
}
