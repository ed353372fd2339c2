package op

// GoOnly lists the exported methods of the stores that are no operations, each
// with the reason. A test holds that every method is a row of the table or on
// this list.
func GoOnly() map[string]string {
	return map[string]string{
		"DB.Close":               "ends the handle; a surface closes the store when it stops",
		"DB.Directory":           "known to whoever opened it; the command line shows it in config and doctor",
		"DB.Export":              "streams to a writer, and a row's answer is one document; the command line has loci export, a server pages through its lists",
		"DB.Import":              "streams from a reader, which a row's input is too small for; the command line has loci import",
		"DB.Memories":            "a handle; its methods are the operations",
		"DB.Graph":               "a handle; its methods are the operations",
		"DB.Notes":               "a handle; its methods are the operations",
		"DB.Embeddings":          "a handle; its methods are the operations",
		"DB.Link":                "gives packages of this module what operations are made of",
		"DB.RegisterEventSink":   "takes a callback",
		"DB.UnregisterEventSink": "belongs to the callback",
		"DB.EventSinkRegistered": "belongs to the callback",

		"DB.RegisterReranker":               "takes a model; the command line binds one with --reranker",
		"DB.UnregisterReranker":             "belongs to the model",
		"EmbeddingStore.RegisterEmbedder":   "takes a model; the command line binds one with --embedder",
		"EmbeddingStore.UnregisterEmbedder": "belongs to the model",

		"Store.Scope":         "what the handle was opened with; a row names its scope itself",
		"Store.Dispatch":      "the same operations by name, for a host that is bound to one scope",
		"Store.DispatchModel": "Dispatch for calls of a model; a surface for models is bound to one scope",
	}
}
