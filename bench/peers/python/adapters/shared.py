"""What indexes of vectors leave to their users: searches and writes kept apart, and
which records have a tag.
"""

import contextlib
import json
import os
import threading


class Gate:
    """Lets many threads search at a time and one write while none searches. Every
    thread that searches has a lock of its own, so that they do not wait for each
    other; who writes takes all of them, and those who search let it go first."""

    def __init__(self):
        self.threads = threading.local()
        self.locks = []
        self.writing = threading.Lock()
        self.waiting = False

    def search(self):
        lock = getattr(self.threads, "own", None)
        if lock is None:
            lock = self.threads.own = threading.Lock()
            with self.writing:
                self.locks.append(lock)
        elif self.waiting:
            with self.writing:
                pass
        return lock

    @contextlib.contextmanager
    def write(self):
        with self.writing, contextlib.ExitStack() as held:
            self.waiting = True
            for lock in self.locks:
                held.enter_context(lock)
            self.waiting = False
            yield


class Tags:
    """The tags of the records, by id, and the ids of the tags that were asked for.
    They are kept beside the index, in a file that is read when first needed."""

    def __init__(self, path):
        self.path = path
        self.rows = None if os.path.exists(path) else []
        self.known = {}  # every set of tags once
        self.asked = {}  # the ids of tags

    def all(self):
        if self.rows is None:
            with open(self.path, encoding="utf-8") as f:
                self.rows = [self.once(tags) for tags in json.load(f)]
        return self.rows

    def once(self, tags):
        tags = tuple(tags)
        return self.known.setdefault(tags, tags)

    def save(self):
        if self.rows is not None:
            with open(self.path, "w", encoding="utf-8") as f:
                json.dump(self.rows, f)

    def of(self, tag):
        ids = self.asked.get(tag)
        if ids is None:
            ids = self.asked[tag] = {id for id, tags in enumerate(self.all()) if tag in tags}
        return ids

    def set(self, id, tags):
        rows = self.all()
        if id >= len(rows):
            rows.extend([()] * (id + 1 - len(rows)))
        for tag in rows[id]:
            if tag in self.asked:
                self.asked[tag].discard(id)
        rows[id] = self.once(tags)
        for tag in rows[id]:
            if tag in self.asked:
                self.asked[tag].add(id)
