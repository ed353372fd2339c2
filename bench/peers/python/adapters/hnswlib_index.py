"""hnswlib: an index of vectors in memory that its user saves as a whole."""

import importlib.metadata
import os

import hnswlib

from . import Base, Unsupported, shared


class Adapter(Base):
    name = "hnswlib"
    version = importlib.metadata.version("hnswlib")
    settings = (
        "cosine, M 16, ef_construction 200, built by all threads, each query searched by one; saved after loading and"
        " on closing: single writes are timed without a save; filters by its callback, asked of a set of Python;"
        " updates by adding an id again, deletes by its mark"
    )
    durable = "saved"
    can_vector = can_filter = can_update = can_delete = True
    effort = [10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512]
    effort_is = "ef"
    missing = ["texts", "tags: its filter is a function of Python, called for every vector that is visited"]

    def open(self, a):
        self.path = os.path.join(a["dir"], "peer.hnsw")
        self.tags = shared.Tags(os.path.join(a["dir"], "tags.json"))
        self.gate = shared.Gate()
        self.index = hnswlib.Index(space="cosine", dim=a["dimension"])
        if os.path.exists(self.path):
            self.index.load_index(self.path, max_elements=a["capacity"])
        else:
            self.index.init_index(max_elements=a["capacity"], M=16, ef_construction=200, random_seed=1)

    def insert(self, records, vectors):
        with self.gate.write():
            self.index.add_items(vectors, [r["id"] for r in records])
            for r in records:
                self.tags.set(r["id"], r["tags"])

    def finish(self):
        self.index.save_index(self.path)
        self.tags.save()

    def vector(self, vector, k, tag, effort, exact):
        if exact:
            raise Unsupported("no search without its graph in the same index")
        allowed = None
        if tag:
            ids = self.tags.of(tag)
            allowed = ids.__contains__
            # It must not be asked for more than there are.
            k = min(k, len(ids))
            if not k:
                return []
        with self.gate.search():
            self.index.set_ef(effort or 64)
            try:
                return self.index.knn_query(vector, k, num_threads=1, filter=allowed)[0][0]
            except RuntimeError as e:
                # It gives none at all if its graph leads to fewer than k that may pass.
                if "contiguous 2D array" in str(e):
                    return []
                raise

    def update(self, record, vector):
        with self.gate.write():
            self.index.add_items(vector, [record["id"]])
            self.tags.set(record["id"], record["tags"])

    def delete(self, id):
        with self.gate.write():
            self.index.mark_deleted(id)
            self.tags.set(id, ())

    def close(self):
        self.finish()
