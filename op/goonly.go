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

		"AgentMemory.Semantic":            "a handle; its methods are the operations",
		"AgentMemory.Episodic":            "a handle; its methods are the operations",
		"AgentMemory.Procedural":          "a handle; its methods are the operations",
		"SemanticMemory.ListAll":          "all facts at once, in memory; a row's answer is bounded, and facts.list goes through them page by page",
		"SemanticMemory.Serialize":        "streams to a writer; facts.serialize writes a file",
		"EpisodicMemory.Serialize":        "streams to a writer; episodes.serialize writes a file",
		"ProceduralMemory.Serialize":      "streams to a writer; procedures.serialize writes a file",
		"SemanticMemory.Deserialize":      "streams from a reader; facts.deserialize reads a file",
		"EpisodicMemory.Deserialize":      "streams from a reader; episodes.deserialize reads a file",
		"ProceduralMemory.Deserialize":    "streams from a reader; procedures.deserialize reads a file",
		"SemanticMemory.Kind":             "said by the row's name",
		"EpisodicMemory.Kind":             "said by the row's name",
		"ProceduralMemory.Kind":           "said by the row's name",
		"SemanticMemory.Dimension":        "the memory's, as agent.status tells",
		"EpisodicMemory.Dimension":        "the memory's, as agent.status tells",
		"ProceduralMemory.Dimension":      "the memory's, as agent.status tells",
		"SemanticMemory.CollectionName":   "a name for people and logs, made of namespace and scope, which a row names itself",
		"EpisodicMemory.CollectionName":   "a name for people and logs, made of namespace and scope, which a row names itself",
		"ProceduralMemory.CollectionName": "a name for people and logs, made of namespace and scope, which a row names itself",

		"Store.Scope":         "what the handle was opened with; a row names its scope itself",
		"Store.Dispatch":      "the same operations by name, for a host that is bound to one scope",
		"Store.DispatchModel": "Dispatch for calls of a model; a surface for models is bound to one scope",
	}
}
