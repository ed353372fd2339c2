"""p-memory: memories in SQLite, its own full text on tantivy, vectors compared one
by one, and a graph.
"""

import threading
from importlib.metadata import version

from p_memory import KnowledgeBase

from . import Base, Unsupported

SPACE = "given"
BATCH = 1024  # texts in one call of the embedder
KINDS = ["memory"]


class Adapter(Base):
    name = "p-memory"
    version = version("p-memory")
    settings = (
        "memories.upsert_many a batch; update_index and embeddings.sync once after loading; "
        "after a single write the next search calls the one or both that it needs, "
        "for a write leaves words and vectors to them; "
        "vectors of 8 bits (sq8), its default, all of them compared; "
        "an embedder that hands back the given vectors by their texts; "
        "its own tokenizer in both analyses: words, and Chinese as single characters and pairs; "
        "search over memories without reranking, 'text' and 'vector' switched on as needed; "
        "graph: relations declared symmetric, entities found by graph.resolve, one step by "
        "graph.neighbors, more by graph.ego"
    )
    durable = "written"  # SQLite with synchronous=NORMAL in WAL mode
    own_analysis = True
    can_text = can_vector = can_hybrid = can_filter = True
    can_update = can_delete = can_graph = True
    effort = [8]  # it has but this one, and it is not exact
    effort_is = "bits of a number in a vector"
    missing = ["an index of vectors: all are compared", "exact vectors beside those of 8 bits"]

    def open(self, a):
        self.analysis = a["analysis"]
        self.vectors = a["vectors"]
        self.dimension = a["dimension"]
        self.pending = {}  # vectors of what is written and not yet synced, by text
        self.synced = []  # texts of those that a sync has taken
        self.catching = threading.Lock()
        self.new_words = self.new_vectors = False  # whether there are writes to catch up with
        self.asked = threading.local()  # the query's vector while this thread searches
        self.ids = None  # theirs by ours, read when first needed
        self.base = KnowledgeBase(a["dir"])
        if self.vectors:
            embeddings = self.base.embeddings
            if not embeddings.spaces():
                embeddings.register_space(id=SPACE, model="given", dimension=self.dimension, encoding="sq8")
            # Entities have no vectors here, and it would embed their names.
            embeddings.set_vectorization(self.base.namespace, "graph", False)
            self.sample = True
            embeddings.register_embedder(SPACE, self.embed, max_batch=BATCH)
            self.sample = False

    def embed(self, texts):
        """The embedder it calls: for records and queries in place of a model."""
        query = getattr(self.asked, "vector", None)
        if query is not None:
            return [query]
        if self.sample:  # registering tries it with texts of its own
            return [[1.0] + [0.0] * (self.dimension - 1) for _ in texts]
        self.synced.extend(texts)
        return [self.pending[text].tolist() for text in texts]

    def content(self, record):
        return record["words"] if self.analysis == "words" else record["text"]

    def inputs(self, records, vectors):
        out = []
        for i, record in enumerate(records):
            text = self.content(record)
            out.append({"judgment": text, "tags": record["tags"], "metadata": {"n": record["id"]}})
            if vectors is not None:
                self.pending[embedded(text, record["tags"])] = vectors[i]
        return out

    def insert(self, records, vectors):
        written = self.base.memories.upsert_many(self.inputs(records, vectors))["value"]
        if self.ids is not None:
            for record, memory in zip(records, written):
                self.ids[record["id"]] = memory["id"]
        self.new_words, self.new_vectors = True, self.vectors

    def finish(self):
        self.catch_up(words=True, vectors=self.vectors)

    def catch_up(self, words=False, vectors=False):
        if words and self.new_words:
            with self.catching:
                if self.new_words:
                    self.new_words = False
                    self.base.update_index()
        if vectors and self.new_vectors:
            with self.catching:
                if self.new_vectors:
                    self.new_vectors = False
                    self.base.embeddings.sync(SPACE, batch=BATCH)
                    for text in set(self.synced):
                        del self.pending[text]
                    self.synced.clear()

    def search(self, query, k, tag, **paths):
        found = self.base.search(
            query,
            filter={"tags": [tag]} if tag else None,
            kinds=KINDS,
            limit=k,
            rerank=False,
            **paths,
        )
        if found["diagnostics"]["degraded"]:
            raise RuntimeError(f"degraded: {found['diagnostics']['degraded']}")
        return [hit["record"]["metadata"]["n"] for hit in found["hits"]]

    def asking(self, vector, *args, **paths):
        self.asked.vector = vector.tolist()
        try:
            return self.search(*args, embed_space=SPACE, **paths)
        finally:
            self.asked.vector = None

    def text(self, query, k, tag):
        self.catch_up(words=True)
        return self.search(self.content(query), k, tag, vector=False)

    def vector(self, vector, k, tag, effort, exact):
        if exact:
            raise Unsupported("vectors are kept in 8 bits a number")
        self.catch_up(vectors=True)
        # It wants a text to embed; which, does not matter.
        return self.asking(vector, "query", k, tag, text=False)

    def hybrid(self, query, vector, k, tag, effort):
        self.catch_up(words=True, vectors=True)
        return self.asking(vector, self.content(query), k, tag)

    def theirs(self, id):
        if self.ids is None:
            self.ids = {}
            after = None
            while True:
                page = self.base.memories.list(limit=1000, after=after)
                for memory in page["items"]:
                    self.ids[memory["metadata"]["n"]] = memory["id"]
                after = page["next_cursor"]
                if after is None:
                    break
        return self.ids[id]

    def update(self, record, vector):
        memory = self.inputs([record], None if vector is None else [vector])[0]
        self.base.memories.upsert(memory, id=self.theirs(record["id"]))
        self.new_words, self.new_vectors = True, self.vectors

    def delete(self, id):
        self.base.memories.delete(self.theirs(id))
        del self.ids[id]

    def graph(self, triples):
        names = dict.fromkeys(name for s, _, o in triples for name in (s, o))
        made = self.base.graph.apply_batch(entities=[{"name": name, "entity_type": "thing"} for name in names])
        ids = {e["name"]: e["id"] for e in made["value"]["entities"]}
        self.base.graph.apply_batch(
            relations=[{"subject_id": ids[s], "predicate": p, "object_id": ids[o]} for s, p, o in triples]
        )
        for predicate in {p for _, p, _ in triples}:
            # Its graph is directed, this makes relations count either way. The method
            # for it sends an inverse of null, which its core refuses.
            self.base.invoke("graph.set_predicate_rule", {"predicate": predicate, "symmetric": True})
        self.base.update_index()

    def entity(self, name):
        return self.base.graph.resolve(name, limit=1)[0]["id"]

    def near(self, entity, depth, limit):
        graph, id = self.base.graph, self.entity(entity)
        if depth == 1:
            return [e["name"] for e in graph.neighbors(id, limit=limit)["entities"]]
        return [e["name"] for e in graph.ego(id, depth, limit=limit)]

    def path(self, start, end):
        between = self.base.graph.path(self.entity(start), self.entity(end))
        return [e["name"] for e in between or []]

    def close(self):
        # Vectors that no sync has taken are known to this process alone.
        self.finish()
        self.base.close()


def embedded(text, tags):
    """The text that it embeds of a memory: the judgment, trimmed, and a line of the tags."""
    tags = " ".join(sorted(tag.lower() for tag in tags))
    return f"{text.strip()}\n{tags}" if tags else text.strip()
