"""Ways to damage a result file, drawn from a random generator: bytes in, bytes out. Compute only, no I/O."""

import re
from collections.abc import Callable, Sequence
from random import Random

from checks.fuzz import payloads

MOST_BYTES = 48 * 1024
"""Of a mutated input: larger ones cost time and find nothing more."""
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_VALUES = (*payloads.of("values"), b"9" * 400, b"9" * 5000)
_TOKENS, _BOMBS = payloads.of("tokens"), payloads.of("bombs")
_NESTS = ((b'{"a":', b"}"), (b"[", b"]"), (b"<a>", b"</a>"), (b'{"fio version":', b"}"), (b"(", b")"))

Mutation = Callable[[bytes, Random, Sequence[bytes]], bytes]


def mutate(seed: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    """Damage an input in one to four ways.

    - `seed`: a real result.
    - `random`: decides everything; the same state gives the same input.
    - `others`: further results, for splices.
    """
    content = seed
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        content = random.choice(MUTATIONS)(content, random, others)[:MOST_BYTES]
    return content


def _flip(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    changed = bytearray(content)
    for _n in range(random.choice((1, 1, 2, 8))):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _truncate(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    return content[: random.randrange(len(content) + 1)]


def _behead(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    return content[random.randrange(len(content) + 1) :]


def _cut_out(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(content, random)
    return content[:start] + content[end:]


def _double(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(content, random)
    return content[:end] + content[start:end] * random.choice((1, 1, 2, 20)) + content[end:]


def _move(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    start, end = _span(content, random)
    place = random.randrange(len(content) + 1)
    return content[:place] + content[start:end] + content[place:]


def _splice(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    other = random.choice(others)
    return content[: random.randrange(len(content) + 1)] + other[random.randrange(len(other) + 1) :]


def _append(content: bytes, random: Random, others: Sequence[bytes]) -> bytes:
    return content + random.choice((b"", b"\n", b"\r\n")) + random.choice(others)


def _number(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    for _n in range(random.choice((1, 1, 1, 3))):
        number = _NUMBER.search(content, random.randrange(len(content) + 1))
        if number:
            content = content[: number.start()] + random.choice(_VALUES) + content[number.end() :]
    return content


def _token(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    place = random.randrange(len(content) + 1)
    return content[:place] + random.choice(_TOKENS) + content[place:]


def _noise(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    place = random.randrange(len(content) + 1)
    return content[:place] + random.randbytes(random.choice((1, 4, 64))) + content[place:]


def _line(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Drop, double or swap lines."""
    lines = content.split(b"\n")
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(3)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(first, lines[second])
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _nest(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    opening, closing = random.choice(_NESTS)
    depth = random.choice((2, 40, 100, 1000, 5000))
    place = random.randrange(len(content) + 1)
    closed = closing * depth if random.random() < 0.5 else b""
    return content[:place] + opening * depth + closed + content[place:]


def _bomb(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    place = random.choice((0, 0, random.randrange(len(content) + 1)))
    return content[:place] + random.choice(_BOMBS) + content[place:]


def _encode(content: bytes, random: Random, _: Sequence[bytes]) -> bytes:
    """Write it in another encoding, whole or from the middle on."""
    encoding = random.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1251", "utf-7"))
    place = random.choice((0, 0, random.randrange(len(content) + 1)))
    text = content[place:].decode("utf-8", "replace")
    return content[:place] + text.encode(encoding, "replace")


def _span(content: bytes, random: Random) -> tuple[int, int]:
    start = random.randrange(len(content) + 1)
    return start, min(len(content), start + random.choice((1, 8, 64, 512, 4096)))


MUTATIONS: tuple[Mutation, ...] = (
    *(_flip, _truncate, _behead, _cut_out, _double, _move, _splice, _append, _number, _number, _number),
    *(_token, _noise, _line, _nest, _bomb, _encode),
)
