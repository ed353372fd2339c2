"""Words of Chinese for engines that look for words between blanks and have no
segmenter of their own: their guides leave that to the user, and jieba in its
search mode is what Python users take.
"""

import logging
import re

import jieba

jieba.setLogLevel(logging.WARNING)

# The ideographs of the Unicode blocks in common use, and the sign of repetition.
han = re.compile("[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+")


def prepare():
    """Reads the dictionary, which takes a second, so that no call that is timed does."""
    jieba.initialize()


def parted(text):
    """The text with blanks around the words of its Chinese runs, all else as it was."""
    return han.sub(lambda run: f" {' '.join(jieba.cut_for_search(run[0]))} ", text)


def of(record, analysis):
    """What an engine that splits at blanks is given of a record or a query."""
    return record["words"] if analysis == "words" else parted(record["text"])
