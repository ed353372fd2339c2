"""Tries adapters through the worker as the driver of the comparison does: every
operation on a few generated records, the answers compared with plain ones made
here. Run as: python test_adapters.py PRODUCT... [--records N], a PRODUCT being
the name of a module in adapters. Ends with an error if an answer is wrong.
"""

import argparse
import collections
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy

K = 10
DIMENSION = 48
QUERIES = 40
WORKER = pathlib.Path(__file__).with_name("worker.py")


class Product:
    """A worker process; call gives what it answered or raises."""

    class Unsupported(Exception):
        pass

    def __init__(self, name):
        command = [sys.executable, str(WORKER), name]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def call(self, op, **args):
        self.process.stdin.write(json.dumps({"op": op, "args": args}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the worker died at {op}"
        reply = json.loads(line)
        if "unsupported" in reply:
            raise self.Unsupported(reply["unsupported"])
        assert "error" not in reply, f"{op}: {reply.get('error')}"
        return reply["ok"]

    def close(self):
        self.call("close")
        assert self.process.wait(60) == 0, "the worker did not end well"


class Data:
    """Records with words of different frequency, tags and vectors, all of one seed."""

    def __init__(self, folder, count, extra):
        r = random.Random(7)
        consonants, vowels = "bdfgklmnprstvz", "aeiou"
        syllables = [a + b for a in consonants for b in vowels]
        words = [f"{a}{b}k" for a in syllables for b in syllables]
        r.shuffle(words)
        self.common, self.rest = words[:30], words[30:430]
        self.count = count
        self.postings = collections.defaultdict(dict)
        self.records = []
        for i in range(count + extra):
            body = [r.choice(self.common if r.random() < 0.4 else self.rest) for _ in range(r.randint(6, 30))]
            # A word of its own: the first one, so that writes can be found by it.
            body.insert(0, f"own{i}word")
            tags = [f"tenth-{i % 10}", f"part-{i % 37}"]
            text = " ".join(body)
            self.records.append({"id": i, "text": text, "words": text, "tags": tags})
        self.path = folder / "records.jsonl"
        with open(self.path, "w", encoding="utf-8") as f:
            for record in self.records:
                f.write(json.dumps(record, ensure_ascii=False) + "\n")
        g = numpy.random.default_rng(7)
        self.vectors = self.unit(g, len(self.records))
        self.questions = self.unit(g, QUERIES)
        self.vectors_path, self.questions_path = folder / "vectors.f32", folder / "questions.f32"
        self.vectors.tofile(self.vectors_path)
        self.questions.tofile(self.questions_path)
        self.queries = [" ".join(r.sample(self.rest, 2) + r.sample(self.common, 1)) for _ in range(QUERIES)]
        self.tags = [f"tenth-{i % 10}" if i % 2 else f"part-{i % 37}" for i in range(QUERIES)]

    @staticmethod
    def unit(g, rows):
        v = g.standard_normal((rows, DIMENSION)).astype("<f4")
        return v / numpy.linalg.norm(v, axis=1, keepdims=True)

    def load(self, start, end, vectors, batch=1):
        return {
            "records": str(self.path),
            "vectors": str(self.vectors_path) if vectors else "",
            "from": start,
            "to": end,
            "batch": batch,
        }

    def tagged(self, tag):
        return [i for i in range(self.count) if not tag or tag in self.records[i]["tags"]]

    def nearest(self, query, tag):
        ids = numpy.array(self.tagged(tag))
        cosine = self.vectors[ids] @ self.questions[query]
        return [int(i) for i in ids[numpy.argsort(-cosine)[:K]]]

    def matching(self, query, tag):
        """All ids that hold a word of the query, the best by BM25 first."""
        if not self.postings:
            for record in self.records[: self.count]:
                for word, frequency in collections.Counter(record["words"].split()).items():
                    self.postings[word][record["id"]] = frequency
        length = [r["words"].count(" ") + 1 for r in self.records[: self.count]]
        mean = statistics.mean(length)
        scores = collections.Counter()
        for word in query.split():
            holding = self.postings[word]
            weight = math.log(1 + (self.count - len(holding) + 0.5) / (len(holding) + 0.5))
            for i, frequency in holding.items():
                scores[i] += weight * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length[i] / mean))
        wanted = set(self.tagged(tag))
        return [i for i, _ in scores.most_common() if i in wanted]


def overlap(found, expected):
    return len(set(found) & set(expected)) / len(expected) if expected else 1.0


class Trial:
    def __init__(self, name, data, folder):
        self.name, self.data, self.folder = name, data, folder
        self.report = {}

    def note(self, key, cost):
        """Keeps the median of a call, in microseconds: rough, for the eye alone."""
        if cost["times"]:
            self.report[key] = f"{statistics.median(cost['times']) * 1e6:.0f} us"

    def check_refusal(self, op, **args):
        try:
            self.product.call(op, **args)
        except Product.Unsupported:
            return
        raise AssertionError(f"{op} works, but hello says that it does not")

    def begin(self, folder, analysis, count):
        self.product = Product(self.name)
        self.hello = self.product.call("hello")
        for key in ("name", "version", "settings"):
            assert self.hello[key], f"hello without {key}"
        assert self.hello["durable"] in ("synced", "written", "saved", "memory"), self.hello["durable"]
        assert self.hello["effort"] == sorted(self.hello["effort"])
        assert self.hello["text"] or self.hello["vector"]
        folder.mkdir(exist_ok=True)
        opened = self.product.call(
            "open",
            dir=str(folder),
            dimension=DIMENSION if self.hello["vector"] else 0,
            analysis=analysis,
            texts=self.hello["text"],
            vectors=self.hello["vector"],
            capacity=count,
        )
        self.note("open", opened)

    def run(self):
        d = self.data
        extra = len(d.records) - d.count
        self.begin(self.folder / "words", "words", len(d.records))
        vectors = self.hello["vector"]
        loaded = self.product.call("load", **d.load(0, d.count, vectors, 100))
        self.report["load"] = f"{d.count / loaded['wall']:.0f}/s"
        finished = self.product.call("finish")
        self.report["finish"] = f"{finished['wall']:.2f} s"
        self.searches()
        memory = self.product.call("memory")
        assert memory["resident"] >= memory["idle"] > 0
        self.writes(d.count, d.count + extra)
        if self.hello["graph"]:
            self.graph()
        else:
            self.check_refusal("near", entities=["a"], depth=1, limit=10)
        self.product.close()
        self.reopened()
        if self.hello["text"]:
            self.chinese()

    def searches(self):
        for tag in (False, True):
            filtered = " filtered" if tag else ""
            if tag and not self.hello["filter"]:
                continue
            if self.hello["text"]:
                self.text("text" + filtered, tag)
            if self.hello["vector"]:
                self.vector("vector" + filtered, tag)
            if self.hello["hybrid"]:
                self.hybrid("hybrid" + filtered, tag)
        one = {"text": "nothing", "words": "nothing"}
        vectors = ""
        if self.hello["vector"]:
            one["vector"], vectors = 0, str(self.data.questions_path)
        for kind in ("text", "vector", "hybrid"):
            if not self.hello[kind]:
                self.check_refusal("search", kind=kind, queries=[one], k=K, vectors=vectors)

    def ask(self, kind, tag, k=K, **more):
        d = self.data
        queries = []
        for i, words in enumerate(d.queries):
            q = {"text": words, "words": words} if kind != "vector" else {}
            if kind != "text":
                q["vector"] = i
            if tag:
                q["tag"] = d.tags[i]
            queries.append(q)
        vectors = str(d.questions_path) if kind != "text" else ""
        found = self.product.call("search", kind=kind, vectors=vectors, queries=queries, k=k, **more)
        assert len(found["ids"]) == len(found["times"]) == QUERIES
        for i, ids in enumerate(found["ids"]):
            assert len(ids) == len(set(ids)) <= k, ids
            assert not tag or all(d.tags[i] in d.records[id]["tags"] for id in ids), "the filter let others pass"
        return found

    def text(self, key, tag):
        found = self.ask("text", tag)
        self.note(key, found)
        shares = []
        for i, ids in enumerate(found["ids"]):
            expected = self.data.matching(self.data.queries[i], self.data.tags[i] if tag else None)
            assert set(ids) <= set(expected), "a hit without any of the words"
            assert len(ids) == min(K, len(expected)), f"{len(ids)} hits of {len(expected)}"
            shares.append(overlap(ids, expected[:K]))
        self.report[key] += f" (as BM25 {statistics.mean(shares):.2f})"
        assert statistics.mean(shares) >= 0.5, "far from BM25"

    def vector(self, key, tag):
        efforts = [(e, False) for e in self.hello["effort"]] or [(0, False)]
        shares = {}
        for effort, exact in efforts + [(0, True)]:
            try:
                found = self.ask("vector", tag, effort=effort, exact=exact)
            except Product.Unsupported:
                assert exact
                continue
            wanted = (self.data.nearest(i, self.data.tags[i] if tag else None) for i in range(QUERIES))
            shares[effort, exact] = statistics.mean(overlap(*pair) for pair in zip(found["ids"], wanted))
            self.note(key + (" exact" if exact else ""), found)
        best = shares[efforts[-1]]
        self.report[key] += f" (recall {shares[efforts[0]]:.3f} to {best:.3f})"
        assert best >= (0.95 if self.hello["effort"] else 0.999), f"recall of only {best}"
        assert shares.get((0, True), 1) >= 0.999, "exact is not"

    def hybrid(self, key, tag):
        found = self.ask("hybrid", tag)
        self.note(key, found)
        for i, ids in enumerate(found["ids"]):
            tags = self.data.tags[i] if tag else None
            sides = set(self.data.nearest(i, tags)) | set(self.data.matching(self.data.queries[i], tags))
            assert ids, "nothing found"
            # The first is one that the words or the vector name.
            assert ids[0] in sides, "the best hit is neither near nor holds a word"

    def find(self, id, word=None):
        """Whether a record is found by a word, its own one if none is given, or by its vector."""
        if self.hello["text"]:
            word = word or f"own{id}word"
            a = {"kind": "text", "queries": [{"text": word, "words": word}]}
        else:
            effort = max(self.hello["effort"], default=0)
            path = str(self.data.vectors_path)
            a = {"kind": "vector", "queries": [{"vector": id}], "effort": effort, "vectors": path}
        ids = self.product.call("search", k=K, **a)["ids"][0]
        assert len(ids) == len(set(ids)), f"a record is found twice: {ids}"
        return id in ids

    def writes(self, start, end):
        d, vectors = self.data, self.hello["vector"]
        third = (end - start) // 3
        self.note("single", self.product.call("single", **d.load(start, start + third, vectors)))
        assert all(self.find(i) for i in range(start, start + third)), "a single write is not found"
        visible = self.product.call("visible", **d.load(start + third, start + 2 * third, vectors))
        assert len(visible["times"]) == third
        self.note("visible", visible)
        mixed = self.product.call(
            "mixed",
            write=d.load(start + 2 * third, end, vectors),
            read={"kind": "text", "queries": [{"text": w, "words": w} for w in d.queries], "k": K}
            if self.hello["text"]
            else {
                "kind": "vector",
                "vectors": str(d.questions_path),
                "queries": [{"vector": i} for i in range(QUERIES)],
                "k": K,
            },
            readers=2,
            seconds=0.5,
        )
        assert mixed["reads"]["times"] and mixed["writes"]["times"], "readers and writer block each other"
        self.report["mixed"] = f"{len(mixed['reads']['times'])} reads, {len(mixed['writes']['times'])} writes"
        if self.hello["update"]:
            self.note("update", self.product.call("update", **d.load(20, 25, vectors)))
            assert all(self.find(i) for i in range(20, 25))
            if self.hello["text"]:
                assert all(self.find(i, "changed") for i in range(20, 25)), "an update is not found"
        else:
            self.check_refusal("update", **d.load(20, 25, vectors))
        if self.hello["delete"]:
            assert all(self.find(i) for i in range(30, 35))
            self.note("delete", self.product.call("delete", **d.load(30, 35, vectors)))
            assert not any(self.find(i) for i in range(30, 35)), "a deleted record is found"
        else:
            self.check_refusal("delete", **d.load(30, 35, vectors))

    def reopened(self):
        d = self.data
        self.begin(self.folder / "words", "words", len(d.records))
        assert self.find(40), "nothing is found after opening again"
        assert self.find(d.count), "a single write is lost"
        if self.hello["update"] and self.hello["text"]:
            assert self.find(21, "changed"), "an update is lost"
        if self.hello["delete"]:
            assert not self.find(31), "a delete is lost"
        self.product.close()

    def chinese(self):
        texts = [
            "我们在北京大学学习自然语言处理，老师很好。",
            "The database was restored from yesterday's backup.",
            "数据库昨天从备份中恢复了。",
            "他喜欢在周末骑自行车去郊外。",
            "Restoring databases takes hours; 备份很重要。",
        ]
        path = self.folder / "plain.jsonl"
        with open(path, "w", encoding="utf-8") as f:
            for i, text in enumerate(texts):
                f.write(json.dumps({"id": i, "text": text, "words": "", "tags": ["all"]}, ensure_ascii=False) + "\n")
        self.begin(self.folder / "own", "own", len(texts))
        vectors = str(self.data.vectors_path) if self.hello["vector"] else ""
        self.product.call("load", records=str(path), vectors=vectors, batch=100, **{"from": 0, "to": len(texts)})
        self.product.call("finish")
        for text, expected in (("北京大学", 0), ("自行车", 3), ("备份重要吗", 4), ("backup", 1), ("数据库恢复", 2)):
            found = self.product.call("search", kind="text", queries=[{"text": text, "words": ""}], k=3)
            assert expected in found["ids"][0], f"{text} finds {found['ids'][0]}"
        self.product.close()

    def graph(self):
        r = random.Random(3)
        names = [f"entity {i}" for i in range(60)]
        triples = {(r.choice(names), f"relation {r.randrange(4)}", r.choice(names)) for _ in range(110)}
        triples = sorted(t for t in triples if t[0] != t[2])
        path = self.folder / "triples.tsv"
        path.write_text("".join("\t".join(t) + "\n" for t in triples), encoding="utf-8")
        self.note("graph", self.product.call("graph", triples=str(path)))
        near = collections.defaultdict(set)
        for a, _, b in triples:
            near[a].add(b)
            near[b].add(a)

        def distances(start):
            reached, edge = {start: 0}, [start]
            while edge:
                edge = [b for a in edge for b in near[a] if reached.setdefault(b, reached[a] + 1) > reached[a]]
                edge = list(dict.fromkeys(edge))
            return reached

        starts = [n for n in names if near[n]][:20]
        for depth in (1, 2):
            found = self.product.call("near", entities=starts, depth=depth, limit=1000)
            self.note(f"near {depth}", found)
            for start, ids in zip(starts, found["names"]):
                expected = {n for n, away in distances(start).items() if away <= depth}
                assert set(ids) | {start} == expected, f"around {start}: {sorted(ids)}"
        pairs = [(a, b) for a in starts[:8] for b in starts[8:14] if b in distances(a)]
        found = self.product.call("path", pairs=pairs)
        self.note("path", found)
        for (a, b), steps in zip(pairs, found["names"]):
            assert steps[0] == a and steps[-1] == b, steps
            assert len(steps) == distances(a)[b] + 1, "not a shortest path"
            assert all(y in near[x] for x, y in zip(steps, steps[1:])), "no path"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("products", nargs="+")
    parser.add_argument("--records", type=int, default=300)
    a = parser.parse_args()
    failed = False
    for name in a.products:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="adapters-"))
        trial = None
        try:
            trial = Trial(name, Data(folder, a.records, 90), folder)
            trial.run()
            print(f"{name}: ok ({trial.hello['name']} {trial.hello['version']}, {trial.hello['durable']})")
        except (AssertionError, Product.Unsupported) as e:
            failed = True
            print(f"{name}: FAILED: {type(e).__name__}: {e}")
            if trial and hasattr(trial, "product"):
                trial.product.process.kill()
        finally:
            shutil.rmtree(folder)
        if trial:
            print("  " + ", ".join(f"{key} {value}" for key, value in trial.report.items()))
    sys.exit(failed)


if __name__ == "__main__":
    main()
