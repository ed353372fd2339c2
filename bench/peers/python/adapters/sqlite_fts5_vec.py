"""SQLite with its own full text (FTS5) and sqlite-vec."""

import importlib.metadata
import os
import threading

import apsw
import numpy
import sqlite_vec

from . import Base, words

# The last effort to try: all vectors compared in full, none left out by its bits.
ALL = 1 << 20

PRAGMAS = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
PRAGMA cache_size = -65536;
PRAGMA mmap_size = 4294967296;
PRAGMA temp_store = MEMORY;
"""

TABLES = """
CREATE TABLE docs (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE tags (tag TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (tag, id)) WITHOUT ROWID;
CREATE INDEX tags_of ON tags (id);
"""

# The index of full text keeps no text of its own: docs has it. Tags are a column of
# it, as that is its fastest filter by far, and do not count for the rank.
TEXTS = """
CREATE VIRTUAL TABLE fts USING fts5
    (body, tags, content = '', contentless_delete = 1, tokenize = '{tokenize}');
INSERT INTO fts (fts, rank) VALUES ('rank', 'bm25(1.0, 0.0)');
"""

VECTORS = """
CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
CREATE VIRTUAL TABLE bits USING vec0 (id INTEGER PRIMARY KEY, vector bit[{bits}]);
"""

# Ways to the ids of one side of a search, for searches of one side and of both.
MATCHING = "SELECT rowid AS id, rank FROM fts WHERE fts MATCH :words ORDER BY rank LIMIT :k"
TEXT = f"SELECT found.id, docs.text FROM ({MATCHING}) AS found JOIN docs USING (id) ORDER BY found.rank"
NEAREST = """
    SELECT v.id, vec_distance_cosine(v.vector, :vector) AS distance
    FROM {source} ORDER BY distance LIMIT :k
"""
BY_BITS = """
    (SELECT id FROM bits WHERE vector MATCH vec_quantize_binary(:bits) AND k = :effort)
    JOIN vectors AS v USING (id)
"""
BY_TAG = "(SELECT id FROM tags WHERE tag = :tag) JOIN vectors AS v USING (id)"

# Both sides joined by reciprocal rank, as the guide of sqlite-vec has it.
FUSED = """
WITH near AS (SELECT id, row_number() OVER (ORDER BY distance) AS place FROM ({nearest})),
     words AS (SELECT id, row_number() OVER (ORDER BY rank) AS place FROM ({matching})),
     fused AS (
         SELECT coalesce(near.id, words.id) AS id,
             coalesce(1.0 / (60 + near.place), 0) + coalesce(1.0 / (60 + words.place), 0) AS score
         FROM near FULL OUTER JOIN words ON words.id = near.id
         ORDER BY score DESC LIMIT :limit
     )
SELECT fused.id, docs.text FROM fused JOIN docs USING (id) ORDER BY score DESC
"""


def sign(tag):
    """One word for a tag, whatever is in it, that no stemmer changes."""
    return f"t{tag.encode().hex()}x"


class Adapter(Base):
    name = "sqlite-vec + FTS5"
    version = f"{importlib.metadata.version('sqlite-vec')}, SQLite {apsw.sqlite_lib_version()}"
    settings = (
        "one database through apsw; WAL, synchronous FULL, 64 MB of page cache, files mapped; FTS5 without content of"
        " its own beside a table of the texts, optimised after loading, unicode61 (porter where it gets plain texts,"
        " Chinese parted by jieba); tags as a column of FTS5 without weight and as a table; full vectors in a table,"
        " their bits in vec0: the nearest by bits are compared again in full, as its guide on binary quantization"
        " advises; with a filter all vectors of the tag are compared in full; both joined by reciprocal rank in one"
        " statement, 10 k of each side"
    )
    durable = "synced"
    can_text = can_vector = can_hybrid = can_filter = can_update = can_delete = True
    effort = [50, 100, 200, 300, 500, 1000, ALL]
    effort_is = f"nearest by bits that are compared in full ({ALL}: all are)"
    missing = ["an index of vectors: every search compares all of them, by their bits at least"]

    def open(self, a):
        self.path = os.path.join(a["dir"], "peer.db")
        self.analysis = a["analysis"]
        if self.analysis == "own":
            words.prepare()
        self.texts, self.vectors = a["texts"], a["vectors"]
        # Bits are kept in whole bytes.
        self.padding = -a["dimension"] % 8
        self.connections = threading.local()
        new = not os.path.exists(self.path)
        c = self.connection()
        if new:
            self.create(c, a["dimension"])

    def create(self, c, dimension):
        tokenize = "unicode61 remove_diacritics 0" if self.analysis == "words" else "porter unicode61"
        with c:
            c.execute(TABLES)
            if self.texts:
                c.execute(TEXTS.format(tokenize=tokenize))
            if self.vectors:
                c.execute(VECTORS.format(bits=dimension + self.padding))

    def connection(self):
        """The connection of this thread: readers do not wait for the writer then."""
        c = getattr(self.connections, "own", None)
        if c is None:
            c = apsw.Connection(self.path)
            c.set_busy_timeout(10_000)
            c.enable_load_extension(True)
            c.load_extension(sqlite_vec.loadable_path())
            c.enable_load_extension(False)
            c.execute(PRAGMAS)
            self.connections.own = c
        return c

    def padded(self, vectors):
        if not self.padding:
            return vectors
        return numpy.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, self.padding)])

    def insert(self, records, vectors):
        c = self.connection()
        with c:
            self.write(c, records, vectors)

    def write(self, c, records, vectors):
        c.executemany("INSERT INTO docs VALUES (?, ?)", ((r["id"], r["text"]) for r in records))
        c.executemany("INSERT INTO tags VALUES (?, ?)", ((tag, r["id"]) for r in records for tag in r["tags"]))
        if self.texts:
            rows = ((r["id"], words.of(r, self.analysis), " ".join(map(sign, r["tags"]))) for r in records)
            c.executemany("INSERT INTO fts (rowid, body, tags) VALUES (?, ?, ?)", rows)
        if vectors is not None:
            ids = [r["id"] for r in records]
            c.executemany("INSERT INTO vectors VALUES (?, ?)", zip(ids, vectors))
            c.executemany("INSERT INTO bits VALUES (?, vec_quantize_binary(?))", zip(ids, self.padded(vectors)))

    def finish(self):
        c = self.connection()
        if self.texts:
            c.execute("INSERT INTO fts (fts) VALUES ('optimize')")
        c.execute("PRAGMA optimize = 0x10002")
        c.execute("PRAGMA wal_checkpoint (TRUNCATE)")

    def match(self, query, tag):
        asked = words.of(query, self.analysis).split() or [""]
        match = " OR ".join('"' + w.replace('"', '""') + '"' for w in asked)
        return f"body : ({match}) AND tags : {sign(tag)}" if tag else f"body : ({match})"

    def text(self, query, k, tag):
        return self.ids(TEXT, {"words": self.match(query, tag), "k": k})

    def vector(self, vector, k, tag, effort, exact):
        sql, values = self.nearest(vector, k, tag, ALL if exact else effort)
        return self.ids(sql, values)

    def nearest(self, vector, k, tag, effort):
        values = {"vector": vector, "k": k, "tag": tag}
        if tag:
            return NEAREST.format(source=BY_TAG), values
        if effort == ALL:
            return NEAREST.format(source="vectors AS v"), values
        values |= {"bits": self.padded(vector), "effort": max(k, effort or 200)}
        return NEAREST.format(source=BY_BITS), values

    def hybrid(self, query, vector, k, tag, effort):
        nearest, values = self.nearest(vector, 10 * k, tag, effort)
        values |= {"words": self.match(query, tag), "limit": k}
        return self.ids(FUSED.format(nearest=nearest, matching=MATCHING), values)

    def ids(self, sql, values):
        return [row[0] for row in self.connection().execute(sql, values)]

    def update(self, record, vector):
        c = self.connection()
        with c:
            self.remove(c, record["id"])
            self.write(c, [record], None if vector is None else vector[None])

    def delete(self, id):
        c = self.connection()
        with c:
            self.remove(c, id)

    def remove(self, c, id):
        c.execute("DELETE FROM docs WHERE id = ?", (id,))
        c.execute("DELETE FROM tags WHERE id = ?", (id,))
        if self.texts:
            c.execute("DELETE FROM fts WHERE rowid = ?", (id,))
        if self.vectors:
            c.execute("DELETE FROM vectors WHERE id = ?", (id,))
            c.execute("DELETE FROM bits WHERE id = ?", (id,))

    def close(self):
        self.connection().close()
