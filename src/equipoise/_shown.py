"""How results are seen and kept: as HTML in a notebook, as a table, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Literal, overload

from equipoise.errors import MissingExtra, UnknownName

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes

__all__ = ["Row", "Shown"]

Row = Mapping[str, object]
MOST_ROWS = 30  # of a table in a notebook


class Shown:
    """Mixin for results: ``to_frame``, ``plot``, and HTML for notebooks.

    A result says what its rows are, how it is drawn, and what is said above its table.
    """

    def _rows(self) -> Sequence[Row]:
        """Return the table, a mapping from column to value per row."""
        raise NotImplementedError

    def _draw(self, ax: Axes) -> None:
        """Draw the picture."""
        raise NotImplementedError

    def _lines(self) -> Sequence[str]:
        """Return what is said above the table; the first line is the heading."""
        raise NotImplementedError

    def _table(self) -> Sequence[Row]:
        """Return the rows that a notebook shows."""
        return self._rows()

    @overload
    def to_frame(self, kind: Literal["pandas"] = "pandas") -> pandas.DataFrame: ...
    @overload
    def to_frame(self, kind: Literal["polars"]) -> polars.DataFrame: ...
    def to_frame(
        self, kind: Literal["pandas", "polars"] = "pandas"
    ) -> pandas.DataFrame | polars.DataFrame:
        """Return the result as a table of pandas or polars."""
        rows = [dict(row) for row in self._rows()]
        if kind not in ("pandas", "polars"):
            raise UnknownName("kind of frame", kind, ("pandas", "polars"))
        try:
            if kind == "polars":
                import polars

                return polars.DataFrame(rows, infer_schema_length=None)
            import pandas

            return pandas.DataFrame(rows)
        except ImportError:
            raise MissingExtra(kind, extra="frames", purpose="tables") from None

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the result with matplotlib, in ``ax`` if it is given; return the axes."""
        from equipoise._look import styled

        with styled():
            if ax is None:
                from matplotlib import pyplot

                _, ax = pyplot.subplots(figsize=(7.5, 4.0), layout="constrained")
            self._draw(ax)
        return ax

    def _repr_html_(self) -> str:
        first, *others = (escape(line.strip()) for line in self._lines())
        text = "".join(f"<br>{line}" for line in others)
        rows = self._table()
        return f"<div><p><strong>{first}</strong>{text}</p>{_html_table(rows)}</div>"


def _html_table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_written(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = len(rows) - MOST_ROWS
    left = f"<p>… and {more:,} more rows</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}"


def _written(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1e5 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
