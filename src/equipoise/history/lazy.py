"""Frames that have an engine of their own: polars' lazy ones, Spark's, ibis tables, Dask's.

Narwhals speaks to all of them; what travels is a handful of counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.history.dates import (
    MOST_FORMS,
    UTC_OFFSET,
    DateText,
    moment,
    read_date_texts,
    require_dates,
)
from equipoise.history.source import (
    Block,
    Condition,
    Moment,
    Reading,
    require_columns,
)

__all__ = ["LazySource"]

ENGINES = {
    "polars": "polars",
    "pyspark": "Spark",
    "pyspark_connect": "Spark",
    "dask": "Dask",
    "sqlframe": "SQLFrame",
}
NUMBER = r"^\s*[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\s*$"


class LazySource:
    """A lazy frame; its rows are taken to have no order."""

    ordered = False
    once = False
    notes: tuple[str, ...] = ()

    def __init__(self, frame: Any, columns: Sequence[str]) -> None:
        import narwhals as nw

        is_ibis = type(frame).__module__.startswith("ibis")
        try:
            if is_ibis and frame.get_backend().name == "polars":
                frame = frame.get_backend().compile(frame)  # a lazy frame, which can do more
            self._frame: nw.LazyFrame[Any] = nw.from_native(frame).lazy()
        except Exception as error:  # every package has its own kind of error
            raise InvalidInput(f"cannot open 'source': {error}") from None
        backend = str(self._frame.implementation.value)
        self.name = "the ibis table"
        if backend == "ibis":
            self.engine = str(frame.get_backend().name)
        else:
            self.engine = ENGINES.get(backend, backend)
            self.name = self.name if is_ibis else f"the {self.engine} frame"
        with Reading(self.name, Exception):
            present = self._frame.collect_schema().names()
        require_columns(columns, present)

    def count(self, columns: Sequence[str], first: int | None = None) -> list[tuple[Any, ...]]:
        """Return every combination of values with its number of rows."""
        import narwhals as nw

        rows = self._frame.select(*columns)
        if first is not None:
            rows = rows.head(first)
        return self._fetch(rows.group_by(*columns).agg(nw.len().alias(_free("n", columns))))

    def numbers(self, where: Condition, most: int) -> list[int]:
        """Return nothing: rows have no numbers."""
        return []

    def place(self, tau: int, read: Condition, hit: Condition) -> int:
        """Rows have no order."""
        raise NotImplementedError

    def block(self, order_by: str, tau: int, read: Condition, hit: Condition) -> Block:
        """Return the people at the value of the order that holds the tau-th hit."""
        import narwhals as nw

        place = nw.col("place")
        places = (
            self._frame.select(
                nw.col(order_by).alias("place"),
                people=nw.when(_holds(read)).then(nw.lit(1)).otherwise(nw.lit(0)),
                hits=nw.when(_holds(hit)).then(nw.lit(1)).otherwise(nw.lit(0)),
            )
            .group_by("place")
            .agg(nw.col("people").sum(), nw.col("hits").sum())
            .with_columns(missing=nw.when(place.is_null()).then(nw.lit(1)).otherwise(nw.lit(0)))
        )
        by = ["missing", "place"]
        if places.collect_schema()["place"] == nw.String:
            # Numbers go by their size: as text 10 would come before 9.
            digits = nw.when(place.str.contains(NUMBER)).then(place.str.strip_chars())
            places = places.with_columns(
                is_text=nw.when(place.str.contains(NUMBER)).then(nw.lit(0)).otherwise(nw.lit(1)),
                number=digits.otherwise(nw.lit("0")).cast(nw.Float64),
            )
            by = ["missing", "is_text", "number", "place"]
        places = places.with_columns(
            people_until=nw.col("people").cum_sum().over(order_by=by),
            hits_until=nw.col("hits").cum_sum().over(order_by=by),
        )
        ((people_before, hits_before, people, hits),) = self._fetch(
            places.filter(
                nw.col("hits_until") >= tau, nw.col("hits_until") - nw.col("hits") < tau
            ).select(
                (nw.col("people_until") - nw.col("people")).alias("people_before"),
                (nw.col("hits_until") - nw.col("hits")).alias("hits_before"),
                "people",
                "hits",
            )
        )
        return Block(int(people_before), int(hits_before), int(people), int(hits))

    def between(self, column: str, since: Moment | None, until: Moment | None) -> LazySource:
        """Return the rows of a period."""
        import narwhals as nw

        require_columns([column], self._frame.collect_schema().names())
        at = nw.col(column)
        some = self._fetch(self._frame.select(column).filter(~at.is_null()).head(1))
        like = some[0][0] if some else None
        missing = self._frame.select(column).filter(at.is_null())
        ((without,),) = self._fetch(missing.select(nw.len()))
        require_dates(column, like, int(without))
        text = self._date_texts(column) if isinstance(like, str) else None
        start, end = moment("since", since, like, text), moment("until", until, like, text)
        frame = self._frame
        if start is not None:
            frame = frame.filter(at >= start)
        if end is not None:
            frame = frame.filter(at < end)
        import copy

        cut = copy.copy(self)
        cut._frame = frame
        return cut

    def _date_texts(self, column: str) -> DateText:
        import narwhals as nw

        at = nw.col(column)
        rest = at.str.slice(10).str.replace_all(UTC_OFFSET, "U", literal=True)
        forms = self._frame.select(
            day=at.str.slice(0, 10), rest=rest.str.replace_all("[0-9]", "9"), value=at
        )
        found = forms.group_by("day", "rest").agg(nw.col("value").min(), n=nw.len())
        return read_date_texts(column, self._fetch(found.head(MOST_FORMS)))

    def _fetch(self, frame: Any) -> list[tuple[Any, ...]]:
        with warnings.catch_warnings(), Reading(self.name, Exception):
            warnings.simplefilter("ignore")  # what an engine thinks of its own packages
            return [tuple(row) for row in frame.collect().rows()]


def _free(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _holds(condition: Condition) -> Any:
    import narwhals as nw

    either: Any = nw.lit(False)
    for wanted in condition:
        tests: Any = nw.lit(True)
        for column, values in wanted.items():
            test: Any = nw.col(column).is_in([value for value in values if value is not None])
            tests = tests & (test | nw.col(column).is_null() if None in values else test)
        either = either | tests
    return either
