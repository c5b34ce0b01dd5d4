"""Worlds of the literature: a table, and a classifier that decides over it."""

from __future__ import annotations

from functools import cache

import numpy as np

from equipoise.data.tables import adult, encode
from equipoise.errors import MissingExtra
from equipoise.worlds import TableWorld

__all__ = ["adult_world"]

FEATURES = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
)


@cache
def adult_world(group: str = "sex") -> TableWorld:
    """Return Adult with a logistic regression as the decision-maker.

    It approves whom it expects to earn more than 50K; trained on the table's training part with
    every column but sex, it decides over the whole table. The outcome is earning more than 50K.

    Parameters
    ----------
    group
        The column of groups: ``sex`` or ``race``.

    Examples
    --------
    >>> adult_world().groups  # doctest: +SKIP
    ('Female', 'Male')
    """
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise MissingExtra("scikit-learn", extra="ml", purpose="worlds with a classifier") from None

    table = adult()
    features = encode(table, FEATURES)
    columns = table.project("income, part, sex, race").fetchnumpy()
    outcome = columns["income"] == ">50K"
    training = columns["part"] == "train"
    model = LogisticRegression(max_iter=1000).fit(features[training], outcome[training])
    return TableWorld.from_frame(
        {group: columns[group], "income": outcome.astype(np.int8)},
        group=group,
        outcome="income",
        decision=lambda _: model.predict(features).astype(np.int8),
    )
