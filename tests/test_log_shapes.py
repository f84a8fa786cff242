"""Lines of one shape are read once: what the shape says of a line is what the expression itself finds in it."""

import sys

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from postmortem import schema
from postmortem.formats import names_digits, patterns
from postmortem.parsers import _shapes, lines
from postmortem.parsers._text import cut, joined
from postmortem.records import Batch


def extracted(texts: list[str], regex: str) -> pl.DataFrame:
    return pl.DataFrame({"t": texts}).select(pl.col("t").str.extract_groups(regex)).unnest("t")


def placed(texts: list[str], regex: str) -> pl.DataFrame:
    data, starts, _ = joined(pl.Series(texts, dtype=pl.String))
    shapes, of = _shapes.distinct(pl.Series(list(map(_shapes.masked_text, texts)), dtype=pl.String))
    read = {name: place.read(data, starts, of) for name, place in _shapes.captured(shapes, regex).items()}
    return pl.DataFrame(read)


@given(st.lists(st.none() | st.text(max_size=20)))
def test_a_cut_is_the_text_that_was_joined(texts: list[str | None]) -> None:
    assert cut(*joined(pl.Series(texts, dtype=pl.String))).to_list() == texts


@given(st.lists(st.text("1209ab.é ", max_size=16), min_size=1))
def test_places_are_where_the_expression_matches(texts: list[str]) -> None:
    regex = r"(?P<number>[0-9]+)(?:\.(?P<fraction>[0-9]*))?(?P<rest>[abé ]*)(?P<last>[0-9]?)$"
    assert placed(texts, regex).equals(extracted(texts, regex))


def test_every_sample_is_read_by_its_shape_as_by_its_pattern() -> None:
    for pattern in (p for p in patterns() if p.captures and not p.exact):
        texts = [sample.line for sample in pattern.samples]
        texts += [text.translate(str.maketrans("0123456789", "9753102468")) for text in texts]
        assert placed(texts, pattern.regex).equals(extracted(texts, pattern.regex)), pattern.id


def test_an_expression_that_asks_for_certain_digits_is_known() -> None:
    asks = [r"status=5\b", "[1-9]", r"code (?:38|48)", "fp16", "x{2}7"]
    takes_any = [r"(?P<free_1>[0-9]+)", "[0-9a-f]+", "[0-9]{2,12}", r"step \["]
    assert [names_digits(regex) for regex in asks + takes_any] == [True] * len(asks) + [False] * len(takes_any)


def test_rows_that_wait_for_their_writer_do_not_keep_a_block() -> None:
    data, starts, lengths = joined(pl.Series(["a long lead-in of a line", "a long message behind it", None]))
    frame = pl.DataFrame({"line": [1, 2], "part": pl.Series([0, 0], dtype=pl.Int32)}).with_columns(
        prefix=cut(data, starts[[0, 2]], lengths[[0, 2]]), text=cut(data, starts[[1, 1]], lengths[[1, 1]])
    )
    table = schema.tables()["line"].conform(Batch("line", lines._columns(frame, "line")), "run", "train.log")
    del frame
    assert sys.getrefcount(data) == 2
    assert table["prefix"].to_pylist() == ["a long lead-in of a line", None]
