"""A decision-maker that cannot be asked: where its rule approves and denies for certain.

If its rule is of a known class (thresholds, half-spaces), :func:`learn_rule` takes all rules of
the class that agree with past decisions, which are visible for everybody. Where all of these
approve, the rule approves for certain. People inside that region follow their law truncated to a
*known* set, so nothing is added to the error probability. Rows that taught the region are not
fitted to, since they lie inside it by construction.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from equipoise._arrays import Array
from equipoise.errors import BadData, UnknownName
from equipoise.mixture.decision_maker import Ask, Bits, apart

TAUGHT = 0.3  # share of past rows that a rule is learnt from


class LearntRule(NamedTuple):
    """Where all rules of a class that agree with past decisions approve, and where all deny.

    ``fresh`` are the rows that did not teach these regions; ``words`` say how sure the rule is.
    """

    approves: Ask
    denies: Ask
    fresh: Bits
    words: str


def learn_rule(X: Array, approved: Bits, kind: str, seed: int) -> LearntRule:
    """Learn a group's rule from some of its past decisions; the fresh ones may contradict it."""
    classes = {"threshold": _threshold, "half_space": _half_space}
    if kind not in classes:
        raise UnknownName("class of rules in 'accepts'", kind, classes)
    fresh = apart(seed).random(len(X)) >= TAUGHT
    yes, no = X[~fresh & approved], X[~fresh & ~approved]
    if not (len(yes) and len(no)):
        missing = "denied" if len(yes) else "approved"
        raise BadData(f"nobody among the {(~fresh).sum()} people to learn from was {missing}")
    approves, denies = classes[kind](yes, no)
    sure, refused = approves(X[fresh]), denies(X[fresh])
    against, checked = np.where(approved[fresh], refused, sure).sum(), (sure | refused).sum()
    words = (
        f"a {kind.replace('_', '-')} rule: unsure about {1 - checked / max(len(sure), 1):.2%} of "
        f"people, {against} of {checked:,} fresh decisions against it"
    )
    if against:
        raise BadData(f"past decisions contradict the class of rules: {words}")
    return LearntRule(approves, denies, fresh, words)


def _threshold(yes: Array, no: Array) -> tuple[Ask, Ask]:
    """Take every column and direction in which a threshold agrees; a region is where all do."""
    directions = np.hstack([np.eye(yes.shape[1]), -np.eye(yes.shape[1])])
    low, high = (yes @ directions).min(axis=0), (no @ directions).max(axis=0)
    fits = high < low
    if not fits.any():
        raise BadData(
            "no threshold on one column explains these decisions; try 'half_space', or add the "
            "score that the rule looks at as a column"
        )
    directions, low, high = directions[:, fits], low[fits], high[fits]
    return (
        lambda X: np.all(X @ directions >= low, axis=1),
        lambda X: np.all(X @ directions <= high, axis=1),
    )


def _half_space(yes: Array, no: Array) -> tuple[Ask, Ask]:
    """Enclose all separating hyperplanes in a box, by linear programmes; its ends decide.

    Hyperplanes are ``(u + V z) . x = b`` with u one separating direction and V its complement.
    Over a box of (z, b) the least and the largest ``(u + V z) . x - b`` have a closed form.
    """
    everybody = np.concatenate([yes, no])
    centre, spread = everybody.mean(axis=0), everybody.std(axis=0) + 1e-300
    rows = np.concatenate([yes - centre, centre - no]) / spread  # w.x >= b, and w.x <= b turned
    sign = np.concatenate([np.ones(len(yes)), -np.ones(len(no))])
    d = rows.shape[1]
    # variables (w, b, margin): the widest margin with |w| <= 1 in every column
    best = linprog(
        np.append(np.zeros(d + 1), -1.0),
        A_ub=np.column_stack([-rows, sign, np.ones(len(rows))]),
        b_ub=np.zeros(len(rows)),
        bounds=[(-1.0, 1.0)] * d + [(None, None), (None, 1.0)],
    ).x
    if best is None or best[-1] <= 0.0:
        raise BadData(
            "no half-space explains these decisions; give the classifier itself as 'accepts'"
        )
    u = best[:d] / np.linalg.norm(best[:d])
    complement = np.linalg.svd(u[None, :])[2][1:].T
    near = np.argsort(np.abs(rows @ best[:d] - sign * best[d]))[: max(50, len(rows) // 50)]
    origin = (sign[near, None] * rows[near]).mean(axis=0)  # where z and b are told apart best
    shifted = rows - sign[:, None] * origin
    turned = np.column_stack([-shifted @ complement, sign])
    ends = [
        linprog(unit, A_ub=turned, b_ub=shifted @ u, bounds=(None, None)).fun
        for unit in np.vstack([np.eye(d), -np.eye(d)])
    ]
    if None in ends:
        raise BadData(
            f"{len(yes)} approved and {len(no)} denied people leave the half-space's direction "
            "open; learn from more"
        )
    low, high = np.array(ends[:d]), -np.array(ends[d:])
    middle, half = (low + high) / 2.0, (high - low) / 2.0 * (1.0 + 1e-9) + 1e-12
    normal = u + complement @ middle[:-1]

    def value(X: Array, side: float) -> Array:
        x = (X - centre) / spread - origin
        doubt = np.abs(x @ complement) @ half[:-1] + half[-1]
        return np.asarray(x @ normal - middle[-1] - side * doubt)

    return lambda X: value(X, 1.0) >= 0.0, lambda X: value(X, -1.0) < 0.0
