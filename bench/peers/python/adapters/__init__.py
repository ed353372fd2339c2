"""What a worker asks of a product. Every product has a module here with a class
Adapter that is a Base. Methods that a product cannot serve by itself stay as they
are here: they say so, and nothing stands in for them.
"""


class Unsupported(Exception):
    """The product has no such thing; the text says why in plain words."""


class Base:
    # What Hello of the protocol holds; subclasses give theirs.
    name = version = settings = ""
    durable = "synced"  # or "written", "saved", "memory"
    can_text = can_vector = can_hybrid = can_filter = False
    can_update = can_delete = can_graph = False
    own_analysis = False  # its analyser cannot be replaced
    effort = []  # settings of the approximate search to try, ascending
    effort_is = ""  # what the setting is called
    missing = []

    def hello(self):
        return {
            "name": self.name,
            "version": self.version,
            "settings": self.settings,
            "durable": self.durable,
            "text": self.can_text,
            "vector": self.can_vector,
            "hybrid": self.can_hybrid,
            "filter": self.can_filter,
            "update": self.can_update,
            "delete": self.can_delete,
            "graph": self.can_graph,
            "own_analysis": self.own_analysis,
            "effort": self.effort,
            "effort_is": self.effort_is,
            "missing": self.missing,
        }

    def open(self, a):
        """Opens the files in a["dir"], or makes them there. What else a holds:
        dimension, analysis ("words" or "own"), texts and vectors (which of the two
        are to be indexed), capacity (how many records there will be)."""
        raise NotImplementedError

    def insert(self, records, vectors):
        """Writes records (dicts of id, text, words, tags) and their vectors (an
        array of float32 with a row a record, or None) in one call or transaction,
        durable as the product can when it returns."""
        raise NotImplementedError

    def finish(self):
        """What the product's guide advises after bulk loading."""

    def text(self, query, k, tag):
        """The ids of the best k by full text; query has text and words."""
        raise Unsupported("no ranked full text")

    def vector(self, vector, k, tag, effort, exact):
        """The ids of the k nearest by cosine."""
        raise Unsupported("no vectors")

    def hybrid(self, query, vector, k, tag, effort):
        """The ids of the best k by the product's own joining of text and vectors."""
        raise Unsupported("text and vectors are not joined")

    def update(self, record, vector):
        raise Unsupported("no update")

    def delete(self, id):
        raise Unsupported("no delete")

    def graph(self, triples):
        raise Unsupported("no graph")

    def near(self, entity, depth, limit):
        raise Unsupported("no graph")

    def path(self, start, end):
        raise Unsupported("no graph")

    def close(self):
        raise NotImplementedError
