"""faiss: indexes of vectors in memory that their user saves as a whole."""

import os

# The default of all threads, before the library reads it; bulk loading takes all.
os.environ["OMP_NUM_THREADS"] = "1"

import faiss
import numpy

from . import Base, shared

# The last effort to try: all vectors are compared.
ALL = 1 << 20


class Adapter(Base):
    name = "faiss"
    version = faiss.__version__
    settings = (
        "IndexHNSWFlat with 32 neighbours, efConstruction 200, inner product of normalised vectors, built by all"
        " threads, each query searched by one; filters by IDSelectorBitmap, a bitmap for each tag asked for; exact by"
        " the flat index inside; saved after loading and on closing: single writes are timed without a save"
    )
    durable = "saved"
    can_vector = can_filter = True
    effort = [10, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, ALL]
    effort_is = f"efSearch ({ALL}: all are compared, without the graph)"
    missing = ["texts", "tags: its filter is a bitmap that its user keeps", "updates and deletes of an HNSW index"]

    def open(self, a):
        self.path = os.path.join(a["dir"], "peer.faiss")
        self.ids_path = os.path.join(a["dir"], "ids.npy")
        self.tags = shared.Tags(os.path.join(a["dir"], "tags.json"))
        self.gate = shared.Gate()
        self.selectors = {}
        # Ids by place: this index numbers vectors in the order of their coming.
        self.ids = numpy.zeros(a["capacity"], dtype=numpy.int64)
        self.changed = False
        if os.path.exists(self.path):
            self.index = faiss.read_index(self.path)
            ids = numpy.load(self.ids_path)
            self.ids[: len(ids)] = ids
        else:
            self.index = faiss.IndexHNSWFlat(a["dimension"], 32, faiss.METRIC_INNER_PRODUCT)
            self.index.hnsw.efConstruction = 200
        self.flat = faiss.downcast_index(self.index.storage)

    def insert(self, records, vectors):
        with self.gate.write():
            start = self.index.ntotal
            self.room(start + len(records))
            self.ids[start : start + len(records)] = [r["id"] for r in records]
            vectors = vectors.copy()
            faiss.normalize_L2(vectors)
            if len(records) > 1:
                faiss.omp_set_num_threads(os.cpu_count())
            self.index.add(vectors)
            faiss.omp_set_num_threads(1)
            for r in records:
                self.tags.set(r["id"], r["tags"])
            self.selectors.clear()
            self.changed = True

    def room(self, count):
        if count > len(self.ids):
            self.ids = numpy.concatenate([self.ids, numpy.zeros(count, dtype=numpy.int64)])

    def finish(self):
        if self.changed:
            faiss.write_index(self.index, self.path)
            numpy.save(self.ids_path, self.ids[: self.index.ntotal])
            self.tags.save()
            self.changed = False

    def selector(self, tag):
        found = self.selectors.get(tag)
        if found is None:
            held = numpy.fromiter(self.tags.of(tag), dtype=numpy.int64)
            bits = numpy.packbits(numpy.isin(self.ids[: self.index.ntotal], held), bitorder="little")
            found = self.selectors[tag] = faiss.IDSelectorBitmap(bits)
        return found

    def vector(self, vector, k, tag, effort, exact):
        with self.gate.search():
            only = self.selector(tag) if tag else None
            if exact or effort == ALL:
                how, index = faiss.SearchParameters(sel=only), self.flat
            else:
                how, index = faiss.SearchParametersHNSW(sel=only, efSearch=effort or 64), self.index
            places = index.search(vector[None], k, params=how)[1][0]
            # Places that nothing was found for are -1.
            return self.ids[places[places >= 0]]

    def close(self):
        self.finish()
