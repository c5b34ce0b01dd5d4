"""A score for audits that look: learned from the approved, and better as labels come.

The approved are not like the denied, so a model of the former is a guess about the latter. Labels
that an audit buys tell which guess is better: a refit is kept only if it foretells labels that it
was not trained on better than the model in force foretold them before they were known. The audit
needs none of this to be right: it reads a score after everything that is staked is fixed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.errors import InvalidInput, MissingExtra

__all__ = ["ScoreModel"]

Array = NDArray[np.float64]
Bits = NDArray[np.int8]
Table = Any  # what scikit-learn takes: an array, or a pandas or polars table

START = 30  # labels before the first refit
FRESH = 20  # labels since the model in force was fitted, to judge it by
FEW = 5  # labels of each outcome, as many as there are folds
GROWTH = 1.25  # labels grow by this factor between two refits
CLIP = 0.001  # no probability is nearer to 0 or 1


class ScoreModel:
    """Score people for ``ask(..., score=)``, refitted as their labels come.

    The score is the log odds of outcome 1, so that all versions share a scale. Labels that were
    scored by an earlier version keep their score: whatever an audit went by is on record.

    Parameters
    ----------
    features, outcomes
        Of past approved people, a row each: an array, or a pandas or polars table.
    pipeline
        Any classifier of scikit-learn with ``predict_proba``, such as a pipeline; it is cloned and
        left as it is. None: a logistic regression, with categories as columns of their own.
    seed
        Shuffles labels for cross-validation.

    Attributes
    ----------
    version
        How often a refit was kept, how many labels it knows, and a digest of what it was fitted
        to.
    labels
        How many were told.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> approved = rng.normal(size=(400, 2))
    >>> model = ScoreModel(approved, (approved[:, 0] > 0).astype(int))
    >>> seen = model.look([0.3, -1.2])  # audit.ask("A", 0, **seen)
    >>> seen["score"] > 0.0, seen["version"].split(",")[0]
    (True, '0: 0 labels')
    >>> model.tell([0.3, -1.2], 1)  # too early for a refit
    False
    """

    def __init__(
        self, features: Table, outcomes: ArrayLike, *, pipeline: Any = None, seed: int = 0
    ) -> None:
        self._approved = _table(features)
        self._known = _outcomes(outcomes, len(self._approved))
        if not 0 < self._known.sum() < len(self._known):
            raise InvalidInput(
                "'outcomes' must hold both 0 and 1, or there is nothing to learn; all are "
                f"{int(self._known[0]) if len(self._known) else 'missing'}"
            )
        if pipeline is not None and not (
            hasattr(pipeline, "fit") and hasattr(pipeline, "predict_proba")
        ):
            raise InvalidInput(
                "'pipeline' must be a classifier of scikit-learn with 'predict_proba'; "
                f"got {type(pipeline).__name__}"
            )
        self._pipeline = _usual(self._approved) if pipeline is None else pipeline
        self._seed = seed
        self._people: list[Table] = []  # a row each
        self._told: list[int] = []
        self._foretold: list[float] = []  # probability of 1, before the outcome was known
        self._fresh = 0  # labels from here on are new to the model in force
        self._next_refit = START
        self._kept = 0
        self._in_force = self._fitted(self._approved, self._known)
        self.version = self._named(self._approved, self._known)

    @property
    def labels(self) -> int:
        """How many labels were told."""
        return len(self._told)

    def score(self, features: Table) -> Array:
        """Return everybody's score: the log odds of outcome 1."""
        p = self._probabilities(self._in_force, self._rows(features))
        return np.log(p / (1.0 - p))

    def look(self, person: Table) -> dict[str, Any]:
        """Return one person's score and its version, as ``ask`` takes them."""
        rows = self._rows(person)
        if len(rows) != 1:
            raise InvalidInput(f"'person' must be one row; got {len(rows):,}")
        return {"score": float(self.score(rows)[0]), "version": self.version}

    def tell(self, person: Table, outcome: int) -> bool:
        """Take in the outcome of a denied person; say whether a refit was kept.

        Only outcomes that an audit asked for belong here, people who came by another way are not
        like the denied.
        """
        row = self._rows(person)
        if len(row) != 1:
            raise InvalidInput(f"'person' must be one row; got {len(row):,}")
        told = int(_outcomes([outcome], 1)[0])
        self._foretold.append(float(self._probabilities(self._in_force, row)[0]))
        self._people.append(row)
        self._told.append(told)
        return self.labels >= self._next_refit and self.refit()

    def refit(self) -> bool:
        """Fit anew, to the approved and the labels and to the labels alone; keep what is better.

        Better is the mean log-loss over the labels told since the last refit that was kept: the
        model in force foretold them as they came, a candidate foretells each in cross-validation.
        """
        ones = sum(self._told)
        fresh = slice(self._fresh, None)
        few = min(ones, self.labels - ones) < FEW
        if few or self.labels - self._fresh < FRESH:
            return False
        self._next_refit = int(np.ceil(GROWTH * self.labels))
        told, people = np.array(self._told, dtype=np.int8), _stacked(self._people)
        least = _loss(told[fresh], np.array(self._foretold)[fresh])
        best: tuple[Table, Bits] | None = None
        for approved in (True, False):
            loss = _loss(told[fresh], self._foreseen(people, told, approved=approved)[fresh])
            if loss < least:
                least, best = loss, self._training(people, told, approved=approved)
        if best is None:
            return False
        self._in_force = self._fitted(*best)
        self._kept, self._fresh = self._kept + 1, self.labels
        self.version = self._named(*best)
        return True

    def _foreseen(self, people: Table, told: Bits, *, approved: bool) -> Array:
        """Return what each label would have been foretold as by a fit that does not know it."""
        from sklearn.model_selection import StratifiedKFold

        out = np.zeros(len(told))
        folds = StratifiedKFold(FEW, shuffle=True, random_state=self._seed)
        for kept, left_out in folds.split(told, told):
            fit = self._fitted(*self._training(_some(people, kept), told[kept], approved=approved))
            out[left_out] = self._probabilities(fit, _some(people, left_out))
        return out

    def _training(self, people: Table, told: Bits, *, approved: bool) -> tuple[Table, Bits]:
        if not approved:
            return people, told
        return _stacked([self._approved, people]), np.concatenate([self._known, told])

    def _fitted(self, features: Table, outcomes: Bits) -> Any:
        from sklearn.base import clone

        try:
            return clone(self._pipeline).fit(features, outcomes)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"'pipeline' cannot be fitted to 'features': {error}") from error

    def _probabilities(self, fitted: Any, rows: Table) -> Array:
        try:
            p = np.asarray(fitted.predict_proba(rows), dtype=np.float64)[:, 1]
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"the features cannot be scored: {error}") from error
        if not np.isfinite(p).all():
            raise InvalidInput("'pipeline' must give a probability to everybody; some are missing")
        return np.clip(p, CLIP, 1.0 - CLIP)

    def _rows(self, features: Table) -> Table:
        """Return rows of the kind that the model was made with."""
        rows = _table(features)
        if isinstance(self._approved, np.ndarray):
            if not isinstance(rows, np.ndarray) or rows.shape[1] != self._approved.shape[1]:
                raise InvalidInput(
                    f"a person must have {self._approved.shape[1]} features, as the approved "
                    f"have; got {getattr(rows, 'shape', ('', '?'))[1]}"
                )
            return rows
        columns = list(self._approved.columns)
        if isinstance(rows, np.ndarray) or not set(columns) <= set(rows.columns):
            raise InvalidInput(f"a person must have the columns of the approved: {columns}")
        return rows[columns]

    def _named(self, features: Table, outcomes: Bits) -> str:
        import joblib

        digest = joblib.hash([str(self._pipeline), np.asarray(features), outcomes])[:12]
        return f"{self._kept}: {self.labels} labels, {digest}"


def _table(features: Table) -> Table:
    """Return a table as it is, anything else as an array of rows."""
    if hasattr(features, "columns"):
        return features
    rows = np.asarray(features)
    if rows.ndim not in (1, 2) or rows.size == 0:
        raise InvalidInput(
            "'features' must be a table, or an array with a row per person; got "
            f"{rows.ndim} dimensions and {rows.size:,} values"
        )
    return np.atleast_2d(rows)


def _outcomes(outcomes: ArrayLike, rows: int) -> Bits:
    values = np.asarray(outcomes)
    if values.shape != (rows,):
        raise InvalidInput(f"'outcomes' must be one per row, {rows:,}; got {values.shape}")
    if not np.isin(values, (0, 1)).all():
        wrong = values[~np.isin(values, (0, 1))][0]
        raise InvalidInput(f"'outcomes' must be 0 or 1; got {wrong!r}")
    return values.astype(np.int8)


def _stacked(tables: list[Table]) -> Table:
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    import narwhals as nw

    return nw.concat([nw.from_native(table) for table in tables]).to_native()


def _some(table: Table, rows: NDArray[np.intp]) -> Table:
    if isinstance(table, np.ndarray):
        return table[rows]
    import narwhals as nw

    return nw.from_native(table, eager_only=True)[rows.tolist()].to_native()


def _loss(told: Bits, foretold: Array) -> float:
    return float(-np.log(np.where(told == 1, foretold, 1.0 - foretold)).mean())


def _usual(features: Table) -> Any:
    """Return a logistic regression of numbers and, where there are any, categories."""
    try:
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler
    except ImportError:
        raise MissingExtra("scikit-learn", extra="ml", purpose="a model of scores") from None

    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    regression = LogisticRegression(max_iter=1000)
    if isinstance(features, np.ndarray):
        return make_pipeline(numbers, regression)
    import narwhals as nw

    schema = nw.from_native(features).schema
    numeric = [name for name, kind in schema.items() if kind.is_numeric()]
    others = [name for name in schema if name not in numeric]
    columns = make_column_transformer(
        (numbers, numeric), (OneHotEncoder(handle_unknown="ignore"), others)
    )
    return make_pipeline(columns, regression)
