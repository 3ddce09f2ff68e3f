"""The sentences that are copied from posts are short, and say first that they come from an emulator.

That the posts of the samples are what is written now is tested in tests/publish/test_samples.py.
"""

from __future__ import annotations

import re

import pytest

from diskbook.design import scenario_file
from diskbook.facts import paths
from diskbook.report.show import lead

MOST_WORDS, MOST_RESULTS = 25, 3
_INTERVAL = re.compile(r" \(9[0-9.]* % CI [^)]*\)")
_LOAD = re.compile(r"\b(at [\d,]+ IOPS|within \d+ %)")
_RESULT = re.compile(r"[+-]?\d[\d.,]* (?:ms|IOPS|MB/s|%)|\d+ of \d+")
_SENTENCE = re.compile(r"(?<=[^0-9 ][.])\s+(?=[A-Z])")


def results(sentence: str) -> int:
    """Count results: a value with its unit, a change with its interval, a share such as "2 of 5"."""
    return len(_RESULT.findall(_LOAD.sub("", _INTERVAL.sub("", sentence))))


def test_results_are_counted_as_a_reader_does() -> None:
    answer = "A 4K write takes 3.2 ms on ZRS and 1.3 ms on LRS: +146 % (95 % CI 135 to 159 %)."
    assert results(answer) == 3 and lead.words("On the emulator, it takes 3.2 ms.") == 7
    assert results("Writes at 640 IOPS are equal within 5 %, offline in 2 of 5.") == 1


@pytest.mark.parametrize("name", scenario_file.sampled())
def test_a_sample_says_its_answer_in_a_sentence(name: str) -> None:
    text = (paths.POSTS / f"{name}.md").read_text("utf-8")
    title, description = (re.search(rf'^{key}: "(.*)"$', text, re.M) for key in ("title", "description"))
    assert title and description and f"# {title[1]}\n" in text
    opening = text.partition(f"# {title[1]}\n\n")[2].partition("\n\n")[0]
    sentences = [title[1], description[1], *_SENTENCE.split(opening)]
    assert len(sentences) >= 4
    for sentence in sentences:
        assert lead.words(sentence) <= MOST_WORDS, sentence
        assert results(sentence) <= MOST_RESULTS, sentence
    assert sum(map(results, _SENTENCE.split(opening))) <= MOST_RESULTS, opening
    for copied in (title[1], description[1], opening):
        assert copied.startswith("On the emulator, ")
    assert not re.search(r"\d times\b|times as long|checks failed", text)
