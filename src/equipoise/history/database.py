"""Tables of a database that SQLAlchemy reaches, counted there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput, MissingExtra
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

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Engine, FromClause, Select

__all__ = ["DatabaseSource", "engine_of", "require_table"]


def engine_of(url: str) -> Engine:
    """Return an engine for an address such as ``postgresql://host/bank``."""
    import sqlalchemy
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        parsed = sqlalchemy.make_url(url.replace("postgres://", "postgresql://", 1))
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        return sqlalchemy.create_engine(parsed, poolclass=sqlalchemy.NullPool)
    except ModuleNotFoundError as error:
        if error.name == "psycopg":
            raise MissingExtra(
                "psycopg", extra="postgres", purpose="tables in PostgreSQL"
            ) from None
        raise InvalidInput(
            f"'source' {parsed.drivername}://… needs the Python package {error.name!r}: "
            f"pip install {error.name}"
        ) from None
    except NoSuchModuleError:
        raise InvalidInput(
            f"'source' {parsed.drivername}://… needs a SQLAlchemy dialect that is not installed"
        ) from None
    except ArgumentError:
        raise InvalidInput("'source' is no address of a database or of files") from None


def require_table(table: str | None, query: str | None, known: Sequence[str]) -> None:
    """Raise unless exactly one of a table and a query is named."""
    if table is None and query is None:
        raise InvalidInput(
            "a database needs 'table' (--table) or 'query' (--query); its tables are "
            f"{', '.join(known[:20]) or 'none'}"
        )
    if table is not None and query is not None:
        raise InvalidInput("give 'table' (--table) or 'query' (--query), not both")


class DatabaseSource:
    """A table or a query; rows have no order of their own there."""

    ordered = False
    once = False
    notes: tuple[str, ...] = ()

    def __init__(
        self, engine: Engine, columns: Sequence[str], *, table: str | None, query: str | None
    ) -> None:
        import sqlalchemy as sql

        self.engine = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}.get(
            engine.dialect.name, engine.dialect.name
        )
        self.name = f"the table {table!r}" if table else "the query"
        self._engine = engine
        self._error = sql.exc.SQLAlchemyError
        with Reading(f"the database {engine.url.render_as_string()}", self._error):
            known = sql.inspect(engine).get_table_names()
        require_table(table, query, known)
        if query is not None:
            inner: Any = sql.text(f"({query.strip().rstrip(';')}) AS equipoise_past")
        else:
            assert table is not None
            schema, _, name = table.rpartition(".") if table not in known else ("", "", table)
            inner = sql.table(
                sql.quoted_name(name, True),
                schema=sql.quoted_name(schema, True) if schema else None,
            )
        self._from: FromClause = inner
        self._where: list[ColumnElement[bool]] = []
        with Reading(self.name, self._error), engine.connect() as connection:
            empty = connection.execute(
                sql.select(sql.text("*")).select_from(inner).where(sql.text("1 = 0"))
            )
            self._columns = list(empty.keys())
        require_columns(columns, self._columns)

    def count(self, columns: Sequence[str], first: int | None = None) -> list[tuple[Any, ...]]:
        """Return every combination of values with its number of rows."""
        import sqlalchemy as sql

        names = [_column(name) for name in columns]
        if first is not None:
            head = self._select(*names).limit(first).subquery("head")
            names = [head.c[name] for name in columns]
            return self._fetch(sql.select(*names, sql.func.count()).group_by(*names))
        return self._fetch(self._select(*names, sql.func.count()).group_by(*names))

    def numbers(self, where: Condition, most: int) -> list[int]:
        """Return nothing: rows have no numbers."""
        return []

    def place(self, tau: int, read: Condition, hit: Condition) -> int:
        """Rows have no order."""
        raise NotImplementedError

    def block(self, order_by: str, tau: int, read: Condition, hit: Condition) -> Block:
        """Return the people at the value of the order that holds the tau-th hit."""
        import sqlalchemy as sql

        def number(condition: Condition) -> Any:
            return sql.func.sum(sql.case((_holds(condition), 1), else_=0))

        at = _column(order_by)
        places = (
            self._select(at.label("place"), number(read).label("people"), number(hit).label("hits"))
            .group_by(at)
            .subquery("places")
        )
        by = _ranks(places.c.place, is_text=isinstance(self._some(at), str))
        sums = sql.select(
            places.c.people,
            places.c.hits,
            sql.func.sum(places.c.people).over(order_by=by).label("people_until"),
            sql.func.sum(places.c.hits).over(order_by=by).label("hits_until"),
        ).subquery("sums")
        hits_before = sums.c.hits_until - sums.c.hits
        ((people_before, before, people, hits),) = self._fetch(
            sql.select(
                sums.c.people_until - sums.c.people, hits_before, sums.c.people, sums.c.hits
            ).where(sums.c.hits_until >= tau, hits_before < tau)
        )
        return Block(int(people_before), int(before), int(people), int(hits))

    def between(self, column: str, since: Moment | None, until: Moment | None) -> DatabaseSource:
        """Return the rows of a period."""
        import copy

        import sqlalchemy as sql

        require_columns([column], self._columns)
        at = _column(column)
        like = self._some(at)
        ((without,),) = self._fetch(self._select(sql.func.count()).where(at.is_(None)))
        require_dates(column, like, int(without))
        text = self._date_texts(column) if isinstance(like, str) else None
        start, end = moment("since", since, like, text), moment("until", until, like, text)
        cut = copy.copy(self)
        cut._where = [
            *self._where,
            *([at >= start] if start is not None else []),
            *([at < end] if end is not None else []),
        ]
        return cut

    def _some(self, at: Any) -> object:
        """Return any value of a column that is there."""
        some = self._fetch(self._select(at).where(at.is_not(None)).limit(1))
        return some[0][0] if some else None

    def _date_texts(self, column: str) -> DateText:
        import sqlalchemy as sql

        at = _column(column)
        day = sql.func.substr(at, 1, 10).label("day")
        rest = sql.func.replace(sql.func.substr(at, 11), UTC_OFFSET, "U")
        for digit in "012345678":
            rest = sql.func.replace(rest, digit, "9")
        forms = self._select(day, rest.label("rest"), at.label("value")).subquery("forms")
        found = self._fetch(
            sql.select(forms.c.day, forms.c.rest, sql.func.min(forms.c.value), sql.func.count())
            .group_by(forms.c.day, forms.c.rest)
            .limit(MOST_FORMS)
        )
        return read_date_texts(column, found)

    def _select(self, *what: Any) -> Select[Any]:
        import sqlalchemy as sql

        return sql.select(*what).select_from(self._from).where(*self._where)

    def _fetch(self, query: Select[Any]) -> list[tuple[Any, ...]]:
        with Reading(self.name, self._error), self._engine.connect() as connection:
            return [tuple(row) for row in connection.execute(query)]


def _column(name: str) -> Any:
    import sqlalchemy as sql

    return sql.column(sql.quoted_name(name, True))


def _ranks(place: Any, *, is_text: bool) -> list[Any]:
    """Return what orders places: numbers first, by size if they are text, and missing ones last."""
    import sqlalchemy as sql

    missing = sql.case((place.is_(None), 1), else_=0)
    if not is_text:
        return [missing, place]
    bare = rest = sql.func.trim(place)
    for digit in "0123456789":
        rest = sql.func.replace(rest, digit, "")
    signs = rest.in_(["", ".", "-", "-.", "+", "+."])
    inside = sql.or_(bare.like("%_-%"), bare.like("%_+%"))
    is_number = sql.and_(signs, rest != bare, sql.not_(inside))
    number = sql.case((is_number, sql.cast(bare, sql.Double)))
    return [missing, sql.case((is_number, 0), else_=1), number, place]


def _holds(condition: Condition) -> ColumnElement[bool]:
    import sqlalchemy as sql

    either: list[Any] = [sql.false()]
    for wanted in condition:
        tests: list[Any] = [sql.true()]
        for column, values in wanted.items():
            test = _column(column).in_([value for value in values if value is not None])
            tests.append(sql.or_(test, _column(column).is_(None)) if None in values else test)
        either.append(sql.and_(*tests))
    return sql.or_(*either)
