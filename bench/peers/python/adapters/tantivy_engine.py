"""tantivy: an engine of full text."""

import os

import tantivy

from . import Base, words


class Adapter(Base):
    name = "tantivy"
    version = tantivy.__version__
    settings = (
        "one writer with a heap of 128 MB and one thread, every write committed and the reader reloaded; words and"
        " their frequencies indexed without positions, the text stored, tags as words of their own that do not count"
        " for the score; split at blanks, or its English analyser with Chinese parted by jieba; merges waited for"
        " after loading; the best k asked for without counting all"
    )
    durable = "synced"
    can_text = can_filter = can_update = can_delete = True
    missing = ["vectors"]

    def open(self, a):
        self.analysis = a["analysis"]
        split = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
        if self.analysis == "own":
            words.prepare()
            # The filters of its "en_stem", built here because queries need them too.
            split = (
                tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
                .filter(tantivy.Filter.remove_long(40))
                .filter(tantivy.Filter.lowercase())
                .filter(tantivy.Filter.stemmer("english"))
            )
        self.analyzer = split.build()
        schema = tantivy.SchemaBuilder()
        schema.add_unsigned_field("id", stored=True, indexed=True)
        schema.add_text_field("body", tokenizer_name="words", index_option="freq")
        schema.add_text_field("tag", tokenizer_name="raw", index_option="basic")
        # Text fields cannot be stored without being indexed; bytes can.
        schema.add_bytes_field("text", stored=True)
        self.schema = schema.build()
        path = os.path.join(a["dir"], "peer.tantivy")
        os.makedirs(path, exist_ok=True)
        self.index = tantivy.Index(self.schema, path=path)
        self.index.register_tokenizer("words", self.analyzer)
        # Reloaded by hand after each commit, at once instead of a little later.
        self.index.config_reader("manual")
        self.index.reload()
        self.writer = None

    def writing(self):
        if self.writer is None:
            self.writer = self.index.writer(heap_size=128_000_000, num_threads=1)
        return self.writer

    def insert(self, records, vectors):
        for r in records:
            self.add(r)
        self.commit()

    def add(self, record):
        document = tantivy.Document()
        document.add_unsigned("id", record["id"])
        document.add_text("body", words.of(record, self.analysis))
        for tag in record["tags"]:
            document.add_text("tag", tag)
        document.add_bytes("text", record["text"].encode())
        self.writing().add_document(document)

    def commit(self):
        self.writing().commit()
        self.index.reload()

    def finish(self):
        # The writer is used up by waiting; the next write takes a new one.
        self.writing().wait_merging_threads()
        self.writer = None
        self.index.reload()

    def text(self, query, k, tag):
        term = tantivy.Query.term_query
        asked = self.analyzer.analyze(words.of(query, self.analysis))
        parts = [(tantivy.Occur.Should, term(self.schema, "body", word, "freq")) for word in asked]
        if tag:
            only = tantivy.Query.const_score_query(term(self.schema, "tag", tag, "basic"), 0.0)
            parts.append((tantivy.Occur.Must, only))
        searcher = self.index.searcher()
        hits = searcher.search(tantivy.Query.boolean_query(parts, 1), k, count=False).hits
        documents = [searcher.doc(address) for _, address in hits]
        return [(d.get_first("id"), d.get_first("text"))[0] for d in documents]

    def update(self, record, vector):
        self.remove(record["id"])
        self.add(record)
        self.commit()

    def delete(self, id):
        self.remove(id)
        self.commit()

    def remove(self, id):
        # By query: by term, it does not find unsigned numbers.
        self.writing().delete_documents_by_query(tantivy.Query.term_query(self.schema, "id", id))

    def close(self):
        if self.writer is not None:
            self.writer.wait_merging_threads()
