"""mem0 with its store in local files and without a language model: texts are kept as
they are, and its embedder hands back the given vectors.
"""

import os
import shutil
import tempfile
import threading
from importlib.metadata import version

os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-")  # else it makes a folder at home
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy
from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

from . import Base, Unsupported
from .qdrant_local import Sparse

USER = "bench"


class Given(EmbeddingBase):
    """Stands where its embedder is: what the thread was given is the answer."""

    def __init__(self, config):
        super().__init__(config)
        self.now = threading.local()

    def embed(self, text, memory_action=None):
        return self.now.vector.tolist()


class Terms:
    """Stands where fastembed's BM25 is, whose files come from the network."""

    def __init__(self, sparse):
        self.sparse = sparse
        self.now = threading.local()

    def embed(self, texts):
        if getattr(self.now, "silent", False):
            return []
        return [Places(self.sparse.record({"text": text, "words": text})) for text in texts]


class Places:
    def __init__(self, values):
        self.indices = numpy.array(sorted(values))
        self.values = numpy.array([values[p] for p in sorted(values)])


class Adapter(Base):
    name = "mem0ai"
    version = version("mem0ai")
    settings = (
        "Memory with infer=False (no language model); store: Qdrant in a local path, its default, with on_disk; "
        "a local history; its embedder replaced by one that hands back the given vectors; "
        "one add() a record, since a list of messages shares one metadata; "
        "its search() with threshold 0: vectors, for 'hybrid' joined with BM25 by its own scores "
        "(sparse vectors made here in place of fastembed's, whose files come from the network), for 'vector' without; "
        "without spaCy, so no entities; tags in the metadata; "
        "one thread at a time, since a search beside a write fails in its local store"
    )
    durable = "synced"
    can_vector = can_hybrid = can_filter = can_update = can_delete = True
    missing = [
        "text search without vectors",
        "an index over vectors in its local store",
        "writes of many records at once",
        "hits whose cosine is below 0",
        "reading beside a writer in its local store",
    ]

    def open(self, a):
        if not a["vectors"]:
            raise Unsupported("no text search without vectors")
        self.analysis = a["analysis"]
        self.ids = None  # theirs by ours, read when first needed
        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        self.memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "records",
                        "path": os.path.join(a["dir"], "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": a["dimension"],
                    },
                },
                "embedder": unused,
                "llm": unused,
                "history_db_path": os.path.join(a["dir"], "history.db"),
            }
        )
        # The arrays of its store grow under searches that are on their way, which then fail.
        self.alone = threading.Lock()
        self.given = self.memory.embedding_model = Given(self.memory.embedding_model.config)
        self.terms = Terms(Sparse(a["analysis"]))
        self.memory.vector_store._bm25_encoder = self.terms

    def content(self, record):
        return record["words"] if self.analysis == "words" else record["text"]

    def insert(self, records, vectors):
        for i, record in enumerate(records):
            self.given.now.vector = vectors[i]
            with self.alone:
                added = self.memory.add(
                    self.content(record),
                    user_id=USER,
                    metadata={"n": record["id"], "tags": record["tags"]},
                    infer=False,
                )
            if self.ids is not None:
                self.ids[record["id"]] = added["results"][0]["id"]

    def search(self, query, vector, k, tag):
        self.given.now.vector = vector
        filters = {"user_id": USER}
        if tag:
            filters["tags"] = tag
        with self.alone:
            found = self.memory.search(query, top_k=k, filters=filters, threshold=0.0)
        return [hit["metadata"]["n"] for hit in found["results"]]

    def vector(self, vector, k, tag, effort, exact):
        self.terms.now.silent = True
        try:
            return self.search("query", vector, k, tag)
        finally:
            self.terms.now.silent = False

    def hybrid(self, query, vector, k, tag, effort):
        return self.search(self.content(query), vector, k, tag)

    def theirs(self, id):
        if self.ids is None:
            every = self.memory.get_all(filters={"user_id": USER}, top_k=10_000_000)
            self.ids = {m["metadata"]["n"]: m["id"] for m in every["results"]}
        return self.ids[id]

    def update(self, record, vector):
        self.given.now.vector = vector
        with self.alone:
            self.memory.update(self.theirs(record["id"]), text=self.content(record))

    def delete(self, id):
        with self.alone:
            self.memory.delete(self.theirs(id))
        del self.ids[id]

    def close(self):
        self.memory.close()
        self.memory.vector_store.client.close()
        shutil.rmtree(os.environ["MEM0_DIR"])
