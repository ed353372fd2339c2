"""Chroma, embedded: records in SQLite, an HNSW index over their vectors."""

import os

os.environ["ANONYMIZED_TELEMETRY"] = "False"

import chromadb
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings

from . import Base, Unsupported

COLLECTION = "records"


class Adapter(Base):
    name = "chromadb"
    version = chromadb.__version__
    settings = (
        "PersistentClient; one collection, HNSW by cosine with max_neighbors 16 and ef_construction 200, "
        "sync_threshold a twentieth of the records that there will be (its default of 1000 at least), "
        "so that loading writes the whole index twenty times; added in calls of at most max_batch_size; "
        "tags as a list in the metadata, asked by $contains; searches return ids alone; "
        "ef_search is changed by modify and holds once the client is opened again, "
        "which the first search with another one does"
    )
    durable = "synced"
    can_vector = can_filter = can_update = can_delete = True
    effort = [10, 20, 40, 80, 160, 320, 640]
    effort_is = "ef_search"
    missing = [
        "ranked full text: where_document only filters, sparse vectors and search() are for its server",
        "hybrid search, for the same reason",
        "an exact search",
    ]

    def open(self, a):
        if not a["vectors"]:
            raise Unsupported("no ranked full text without its server")
        self.dir = a["dir"]
        self.texts = a["texts"]
        self.threshold = max(1000, a["capacity"] // 20)
        self.connect()
        self.largest = self.client.get_max_batch_size()

    def connect(self):
        self.client = chromadb.PersistentClient(self.dir, settings=Settings(anonymized_telemetry=False))
        self.collection = self.client.get_or_create_collection(
            COLLECTION,
            embedding_function=None,
            configuration={
                "hnsw": {
                    "space": "cosine",
                    "max_neighbors": 16,
                    "ef_construction": 200,
                    "sync_threshold": self.threshold,
                }
            },
        )
        self.ef = self.collection.configuration["hnsw"]["ef_search"]

    def disconnect(self):
        # A client has no close that lets go of the index: it stays in a cache of the process.
        self.client = self.collection = None
        SharedSystemClient.clear_system_cache()

    def insert(self, records, vectors):
        for i in range(0, len(records), self.largest):
            part = records[i : i + self.largest]
            self.collection.add(
                ids=[str(r["id"]) for r in part],
                embeddings=vectors[i : i + self.largest],
                metadatas=[{"tags": r["tags"]} for r in part],
                documents=[r["text"] for r in part] if self.texts else None,
            )

    def vector(self, vector, k, tag, effort, exact):
        if exact:
            raise Unsupported("no exact search")
        if effort and effort != self.ef:
            self.collection.modify(configuration={"hnsw": {"ef_search": effort}})
            self.disconnect()
            self.connect()
        found = self.collection.query(
            query_embeddings=[vector],
            n_results=k,
            where={"tags": {"$contains": tag}} if tag else None,
            include=[],
        )
        return [int(id) for id in found["ids"][0]]

    def update(self, record, vector):
        self.collection.update(
            ids=[str(record["id"])],
            embeddings=[vector],
            metadatas=[{"tags": record["tags"]}],
            documents=[record["text"]] if self.texts else None,
        )

    def delete(self, id):
        self.collection.delete(ids=[str(id)])

    def close(self):
        self.disconnect()
