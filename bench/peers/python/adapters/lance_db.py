"""LanceDB, embedded: versions of columnar files, with indexes over their vectors,
their words and their tags.
"""

import os

# It tells of every search that names its columns; the answers are what counts here.
os.environ["LANCEDB_LOG"] = "error"

import lancedb
import pyarrow
from lancedb.index import FTS, BTree, HnswFlat, LabelList
from lancedb.query import MatchQuery
from lancedb.rerankers import RRFReranker

from . import Base, words

TABLE = "records"
WIDE = 50  # hits of each side that a hybrid search joins


class Adapter(Base):
    name = "lancedb"
    version = lancedb.__version__
    settings = (
        "local directory, synchronous interface, written as Arrow tables; HNSW_FLAT in one partition by cosine with its "
        "defaults (m 20, ef_construction 300), the fastest of its indexes at a recall of 0.99 here; "
        "its full-text index, split at blanks ('words') or with stems and stop words of English over jieba's words ('own'); "
        "LABEL_LIST over tags, BTREE over ids, filters applied before; hybrid by its RRF over 50 of each side; "
        "optimize, then the indexes, after loading; single writes are searched beside the indexes until the next optimize"
    )
    durable = "written"  # its files are written whole and renamed, none is synced
    can_text = can_vector = can_hybrid = can_filter = can_update = can_delete = True
    effort = [10, 20, 40, 80, 160, 320]
    effort_is = "ef"

    def open(self, a):
        self.analysis = a["analysis"]
        self.texts, self.vectors = a["texts"], a["vectors"]
        if self.texts and self.analysis == "own":
            words.prepare()
        self.reranker = RRFReranker()
        columns = [
            pyarrow.field("id", pyarrow.int64()),
            pyarrow.field("text", pyarrow.string()),
            pyarrow.field("tags", pyarrow.list_(pyarrow.string())),
        ]
        if self.texts:
            columns.append(pyarrow.field("words", pyarrow.string()))
        if self.vectors:
            columns.append(pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), a["dimension"])))
        self.schema = pyarrow.schema(columns)
        self.dimension = a["dimension"]
        self.base = lancedb.connect(a["dir"])
        self.table = self.base.create_table(TABLE, schema=self.schema, exist_ok=True)

    def rows(self, records, vectors):
        columns = [
            pyarrow.array([r["id"] for r in records], pyarrow.int64()),
            pyarrow.array([r["text"] for r in records], pyarrow.string()),
            pyarrow.array([r["tags"] for r in records], pyarrow.list_(pyarrow.string())),
        ]
        if self.texts:
            columns.append(pyarrow.array([words.of(r, self.analysis) for r in records], pyarrow.string()))
        if self.vectors:
            flat = pyarrow.array(vectors.reshape(-1), pyarrow.float32())
            columns.append(pyarrow.FixedSizeListArray.from_arrays(flat, self.dimension))
        return pyarrow.Table.from_arrays(columns, schema=self.schema)

    def insert(self, records, vectors):
        self.table.add(self.rows(records, vectors))

    def finish(self):
        # What is indexed already takes up what came since.
        self.table.optimize()
        indexed = {column for index in self.table.list_indices() for column in index.columns}
        wanted = {"id": BTree(), "tags": LabelList()}
        if self.texts:
            wanted["words"] = (
                FTS(
                    base_tokenizer="whitespace",
                    lower_case=False,
                    stem=False,
                    remove_stop_words=False,
                    ascii_folding=False,
                )
                if self.analysis == "words"
                else FTS()
            )
        if self.vectors:
            wanted["vector"] = HnswFlat(distance_type="cosine", num_partitions=1)
        for column, index in wanted.items():
            if column not in indexed:
                self.table.create_index(column, config=index)

    def best(self, query, columns, k, tag):
        if tag:
            query = query.where(f"array_has_any(tags, ['{tag}'])", prefilter=True)
        return query.select(columns).limit(k).to_arrow().column("id").to_pylist()

    def match(self, query):
        return MatchQuery(words.of(query, self.analysis), "words")

    def text(self, query, k, tag):
        return self.best(self.table.search(self.match(query), query_type="fts"), ["id", "_score"], k, tag)

    def vector(self, vector, k, tag, effort, exact):
        search = self.table.search(vector).distance_type("cosine")
        if exact:
            search = search.bypass_vector_index()
        elif effort:
            search = search.ef(max(effort, k))
        return self.best(search, ["id", "_distance"], k, tag)

    def hybrid(self, query, vector, k, tag, effort):
        search = self.table.search(query_type="hybrid").vector(vector).text(self.match(query))
        search = search.distance_type("cosine").rerank(self.reranker)
        if effort:
            search = search.ef(max(effort, WIDE))
        return self.best(search, ["id"], max(WIDE, k), tag)[:k]

    def update(self, record, vector):
        row = self.rows([record], None if vector is None else vector.reshape(1, -1))
        self.table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(row)

    def delete(self, id):
        self.table.delete(f"id = {id}")

    def close(self):
        self.table = self.base = None
