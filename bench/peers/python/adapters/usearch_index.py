"""usearch: an index of vectors in memory that its user saves as a whole."""

import importlib.metadata
import os

import numpy
from usearch.index import Index

from . import Base, shared


class Adapter(Base):
    name = "usearch"
    version = importlib.metadata.version("usearch")
    settings = (
        "cosine, f16 (faster here than f32 and bf16 at a recall of 0.99), connectivity 16, expansion_add 128, built by all threads, each query searched by one; saved"
        " after loading and on closing: single writes are timed without a save; opened as a view of its file until"
        " the first write, which loads it; updates by removing and adding"
    )
    durable = "saved"
    can_vector = can_update = can_delete = True
    effort = [10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512]
    effort_is = "expansion_search"
    missing = ["texts", "filters: its interface of Python has none"]

    def open(self, a):
        self.path = os.path.join(a["dir"], "peer.usearch")
        self.gate = shared.Gate()
        self.index = Index(ndim=a["dimension"], metric="cos", dtype="f16", connectivity=16, expansion_add=128)
        self.viewed = os.path.exists(self.path)
        self.changed = False
        if self.viewed:
            self.index.view(self.path)

    def writing(self):
        if self.viewed:
            self.index.load(self.path)
            self.viewed = False
        self.changed = True
        return self.index

    def insert(self, records, vectors):
        ids = numpy.array([r["id"] for r in records], dtype=numpy.uint64)
        with self.gate.write():
            self.writing().add(ids, vectors)

    def finish(self):
        if self.changed:
            self.index.save(self.path)
            self.changed = False

    def vector(self, vector, k, tag, effort, exact):
        with self.gate.search():
            self.index.expansion_search = effort or 64
            return self.index.search(vector, k, threads=1, exact=exact).keys

    def update(self, record, vector):
        with self.gate.write():
            index = self.writing()
            index.remove(record["id"])
            index.add(record["id"], vector)

    def delete(self, id):
        with self.gate.write():
            self.writing().remove(id)

    def close(self):
        self.finish()
