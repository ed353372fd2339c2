"""Qdrant's client in its local mode: the server's interface over Python and numpy,
points in SQLite and all of them in memory. It is meant for trials and tests.
"""

import collections
import os
import threading
import warnings
from importlib.metadata import version

os.environ["HF_HUB_OFFLINE"] = "1"

import mmh3
import tantivy
from qdrant_client import QdrantClient, models

from . import Base, words

COLLECTION = "records"
DENSE, SPARSE = "dense", "bm25"

# It warns that local mode is not for so many points: the report says so.
warnings.filterwarnings("ignore", message="Local mode is not recommended", category=UserWarning)


class Sparse:
    """Texts as the sparse vectors of Qdrant's BM25: its model makes them from k, b and
    the mean length, a hash of each word being its place. The model's files come from
    the network, so this does what they do. The inverse frequencies of words are
    Qdrant's part.
    """

    k, b = 1.2, 0.75

    def __init__(self, analysis, mean=256.0):
        self.analysis = analysis
        self.mean = mean  # of words in a text; the model's own default is 256
        if analysis == "own":
            words.prepare()
            filters = tantivy.Filter
            builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            for f in (filters.lowercase(), filters.stopword("english"), filters.stemmer("english")):
                builder = builder.filter(f)
            self.analyzer = builder.build()

    def terms(self, record):
        text = words.of(record, self.analysis)
        return text.split() if self.analysis == "words" else self.analyzer.analyze(text)

    def record(self, record):
        terms = self.terms(record)
        norm = self.k * (1 - self.b + self.b * len(terms) / self.mean)
        counts = collections.Counter(place(t) for t in terms)
        return {p: n * (self.k + 1) / (n + norm) for p, n in counts.items()}

    def query(self, query):
        return dict.fromkeys(sorted({place(t) for t in self.terms(query)}), 1.0)


def place(term):
    return abs(mmh3.hash(term))


def sparse(values):
    return models.SparseVector(indices=sorted(values), values=[values[p] for p in sorted(values)])


class Adapter(Base):
    name = "qdrant-client (local)"
    version = version("qdrant-client")
    settings = (
        "local mode, which compares all vectors in numpy and Python; vectors by cosine; "
        "full text by sparse vectors of BM25 with the modifier IDF (k 1.2, b 0.75, the mean length of the first batch), "
        "made here as its model makes them, since that is fetched from the network; they answer faster than its TextQuery; "
        "own analysis: jieba for Chinese, English stop words and stems as its model; "
        "tags in the payload; hybrid by query_points with two prefetches of 50 and RRF; "
        "one thread at a time, since a search beside a write fails in local mode"
    )
    durable = "synced"
    can_text = can_vector = can_hybrid = can_filter = can_update = can_delete = True
    missing = ["indexes in local mode: it warns above 20,000 points", "reading beside a writer in local mode"]

    def open(self, a):
        self.texts, self.vectors = a["texts"], a["vectors"]
        self.client = QdrantClient(path=a["dir"])
        # Its arrays grow under searches that are on their way, which then fail.
        self.alone = threading.Lock()
        self.encoder = Sparse(a["analysis"]) if self.texts else None
        if not self.client.collection_exists(COLLECTION):
            dense = models.VectorParams(size=a["dimension"], distance=models.Distance.COSINE)
            self.client.create_collection(
                COLLECTION,
                vectors_config={DENSE: dense} if self.vectors else {},
                sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)}
                if self.texts
                else None,
            )
            self.fresh = True
        else:
            self.fresh = False
            if self.texts:
                self.encoder.mean = self.client.get_collection(COLLECTION).config.metadata["mean"]

    def point(self, record, vector):
        vectors = {}
        if self.texts:
            vectors[SPARSE] = sparse(self.encoder.record(record))
        if vector is not None:
            vectors[DENSE] = vector.tolist()
        payload = {"text": record["text"], "tags": record["tags"]}
        return models.PointStruct(id=record["id"], vector=vectors, payload=payload)

    def insert(self, records, vectors):
        if self.fresh and self.texts:
            self.encoder.mean = sum(len(self.encoder.terms(r)) for r in records) / len(records)
            self.client.update_collection(COLLECTION, metadata={"mean": self.encoder.mean})
        self.fresh = False
        points = [self.point(r, None if vectors is None else vectors[i]) for i, r in enumerate(records)]
        with self.alone:
            self.client.upsert(COLLECTION, points=points)

    def ask(self, k, tag, **query):
        with self.alone:
            found = self.client.query_points(
                COLLECTION, limit=k, with_payload=False, query_filter=tagged(tag), **query
            )
        return [point.id for point in found.points]

    def text(self, query, k, tag):
        return self.ask(k, tag, query=sparse(self.encoder.query(query)), using=SPARSE)

    def vector(self, vector, k, tag, effort, exact):
        return self.ask(k, tag, query=vector, using=DENSE)

    def hybrid(self, query, vector, k, tag, effort):
        wide = max(50, k)
        return self.ask(
            k,
            None,
            prefetch=[
                models.Prefetch(query=vector.tolist(), using=DENSE, limit=wide, filter=tagged(tag)),
                models.Prefetch(
                    query=sparse(self.encoder.query(query)), using=SPARSE, limit=wide, filter=tagged(tag)
                ),
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
        )

    def update(self, record, vector):
        with self.alone:
            self.client.upsert(COLLECTION, points=[self.point(record, vector)])

    def delete(self, id):
        with self.alone:
            self.client.delete(COLLECTION, points_selector=models.PointIdsList(points=[id]))

    def close(self):
        self.client.close()


def tagged(tag):
    if not tag:
        return None
    return models.Filter(must=[models.FieldCondition(key="tags", match=models.MatchValue(value=tag))])
