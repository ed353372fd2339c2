"""One product behind the protocol of the comparison (see protocol/protocol.go):
requests come as lines of JSON on standard input, answers go as lines of JSON to
standard output. Run as: worker.py PRODUCT.
"""

import importlib
import itertools
import json
import os
import sys
import threading
import time

from adapters import Unsupported

# What products print goes to standard error, so that answers stay clean.
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)


# How long a record may take until a search finds it.
VISIBLE_SECONDS = 10


def memory():
    sizes = {}
    with open("/proc/self/status", encoding="ascii") as f:
        for line in f:
            name, _, value = line.partition(":")
            if name in ("VmRSS", "RssAnon"):
                sizes[name] = int(value.split()[0]) * 1024
    return sizes["VmRSS"], sizes["RssAnon"]


class Meter:
    """Times calls one by one and sums the processor time of the process."""

    def __init__(self):
        self.times = []
        self.cpu = 0.0

    def call(self, f, *args):
        cpu = time.process_time()
        begin = time.perf_counter()
        out = f(*args)
        self.times.append(time.perf_counter() - begin)
        self.cpu += time.process_time() - cpu
        return out

    def cost(self):
        return {"times": self.times, "wall": sum(self.times), "cpu": self.cpu}


def records(path, start, end):
    with open(path, encoding="utf-8") as f:
        for line in itertools.islice(f, start, end):
            yield json.loads(line)


class Worker:
    def __init__(self, adapter):
        self.adapter = adapter
        self.idle = memory()[0]
        self.files = {}

    def rows(self, path):
        """The vectors of a file, mapped."""
        import numpy

        if not path:
            return None
        key = (path, os.path.getsize(path))
        if key not in self.files:
            flat = numpy.memmap(path, dtype="<f4", mode="r")
            self.files[key] = flat.reshape(-1, self.dimension)
        return self.files[key]

    def hello(self, _):
        return self.adapter.hello()

    def open(self, a):
        self.dimension = a["dimension"]
        self.texts = a["texts"]
        m = Meter()
        m.call(self.adapter.open, a)
        return m.cost()

    def batches(self, a, size):
        """Records and their vectors, read before the clock starts."""
        import numpy

        rows = self.rows(a.get("vectors"))
        source = records(a["records"], a["from"], a["to"])
        while batch := list(itertools.islice(source, size)):
            vectors = None
            if rows is not None:
                first = batch[0]["id"]
                vectors = numpy.ascontiguousarray(rows[first : first + len(batch)])
            yield batch, vectors

    def load(self, a):
        m = Meter()
        for batch, vectors in self.batches(a, a["batch"]):
            m.call(self.adapter.insert, batch, vectors)
        return m.cost()

    def finish(self, _):
        m = Meter()
        m.call(self.adapter.finish)
        return m.cost()

    def single(self, a):
        m = Meter()
        for batch, vectors in self.batches(a, 1):
            m.call(self.adapter.insert, batch, vectors)
        return m.cost()

    def visible(self, a):
        m = Meter()
        adapter, effort = self.adapter, a.get("effort", 0)
        by_text = self.texts and adapter.hello()["text"]

        def write_and_find(batch, vectors):
            adapter.insert(batch, vectors)
            record = batch[0]
            end = time.monotonic() + VISIBLE_SECONDS
            while time.monotonic() < end:
                if by_text:
                    # The driver gives each of these records a first word of its own.
                    query = {"text": record["text"].split()[0], "words": record["words"].split()[0]}
                    found = adapter.text(query, 10, None)
                else:
                    found = adapter.vector(vectors[0], 10, None, effort, False)
                if record["id"] in found:
                    return
            # An approximate index may have put it where its search does not come by.
            raise RuntimeError(f"a record that was written is not found within {VISIBLE_SECONDS} s")

        for batch, vectors in self.batches(a, 1):
            m.call(write_and_find, batch, vectors)
        return m.cost()

    def search(self, a):
        rows = self.rows(a.get("vectors"))
        m = Meter()
        found = []
        for q in a["queries"]:
            found.append(m.call(*self.prepared(a, q, rows)))
        out = m.cost()
        out["ids"] = [[int(i) for i in ids] for ids in found]
        return out

    def prepared(self, a, q, rows):
        import numpy

        tag, k = q.get("tag"), a["k"]
        effort, exact = a.get("effort", 0), a.get("exact", False)
        vector = None
        if q.get("vector") is not None:
            vector = numpy.ascontiguousarray(rows[q["vector"]])
        if a["kind"] == "text":
            return self.adapter.text, q, k, tag
        if a["kind"] == "vector":
            return self.adapter.vector, vector, k, tag, effort, exact
        return self.adapter.hybrid, q, vector, k, tag, effort

    def update(self, a):
        m = Meter()
        for batch, vectors in self.batches(a, 1):
            batch[0]["text"] += " changed"
            batch[0]["words"] += " changed"
            m.call(self.adapter.update, batch[0], None if vectors is None else vectors[0])
        return m.cost()

    def delete(self, a):
        m = Meter()
        for i in range(a["from"], a["to"]):
            m.call(self.adapter.delete, i)
        return m.cost()

    def mixed(self, a):
        rows = self.rows(a["read"].get("vectors"))
        queries = [self.prepared(a["read"], q, rows) for q in a["read"]["queries"]]
        # What is written is read beforehand, as much as could be needed.
        writes = list(self.batches(a["write"], 1))
        end = time.monotonic() + a["seconds"]
        times = [[] for _ in range(a["readers"])]
        written = []
        failures = []

        def guarded(f):
            def run():
                try:
                    f()
                except Exception as e:
                    failures.append(e)

            return run

        def reader(n):
            for f, *args in itertools.cycle(queries[n:] + queries[:n]):
                if time.monotonic() >= end:
                    return
                begin = time.perf_counter()
                f(*args)
                times[n].append(time.perf_counter() - begin)

        def writer():
            for batch, vectors in writes:
                if time.monotonic() >= end:
                    return
                begin = time.perf_counter()
                self.adapter.insert(batch, vectors)
                written.append(time.perf_counter() - begin)

        threads = [threading.Thread(target=guarded(lambda n=n: reader(n))) for n in range(a["readers"])]
        threads.append(threading.Thread(target=guarded(writer)))
        cpu = time.process_time()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        cpu = time.process_time() - cpu
        if failures:
            raise failures[0]
        reads = [t for each in times for t in each]
        return {
            "reads": {"times": reads, "wall": a["seconds"], "cpu": cpu},
            "writes": {"times": written, "wall": a["seconds"], "cpu": cpu},
        }

    def memory(self, _):
        resident, anonymous = memory()
        return {"resident": resident, "anonymous": anonymous, "idle": self.idle}

    def graph(self, a):
        with open(a["triples"], encoding="utf-8") as f:
            triples = [tuple(line.rstrip("\n").split("\t")) for line in f]
        m = Meter()
        m.call(self.adapter.graph, triples)
        return m.cost()

    def near(self, a):
        m = Meter()
        names = [m.call(self.adapter.near, e, a["depth"], a["limit"]) for e in a["entities"]]
        return m.cost() | {"names": names}

    def path(self, a):
        m = Meter()
        names = [m.call(self.adapter.path, x, y) for x, y in a["pairs"]]
        return m.cost() | {"names": names}

    def close(self, _):
        m = Meter()
        m.call(self.adapter.close)
        return m.cost()


OPERATIONS = (
    "hello open load finish single visible search update delete mixed memory graph near path close"
).split()


def main():
    module = importlib.import_module("adapters." + sys.argv[1])
    worker = Worker(module.Adapter())
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["op"] not in OPERATIONS:
                raise ValueError(f"no operation {request['op']!r}")
            reply = {"ok": getattr(worker, request["op"])(request.get("args") or {})}
        except Unsupported as e:
            reply = {"unsupported": str(e)}
        except Exception as e:
            import traceback

            traceback.print_exc()
            reply = {"error": f"{type(e).__name__}: {e}"}
        answers.write(json.dumps(reply, ensure_ascii=False) + "\n")
        answers.flush()
        if request["op"] == "close":
            break
    # Some libraries leave threads behind that would keep the process, also when the
    # driver is gone.
    os._exit(0)


if __name__ == "__main__":
    main()
