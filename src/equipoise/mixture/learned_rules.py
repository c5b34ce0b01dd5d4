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

TEACHING_SHARE = 0.3  # of past rows: a rule is learnt from these


class LearntRule(NamedTuple):
    """Where all rules of a class that agree with past decisions approve, and where all deny.

    ``fresh`` are the rows that did not teach these regions; ``description`` says how sure the rule
    is.
    """

    approves: Ask
    denies: Ask
    fresh: Bits
    description: str


def learn_rule(X: Array, approved: Bits, kind: str, seed: int) -> LearntRule:
    """Learn a group's rule from some of its past decisions; the fresh ones may contradict it."""
    classes = {"threshold": _threshold, "half_space": _half_space}
    if kind not in classes:
        raise UnknownName("class of rules in 'accepts'", kind, classes)
    # Drawn by row and not by outcome, so that fresh rows are a fair test of the rule.
    fresh = apart(seed).random(len(X)) >= TEACHING_SHARE
    approved_people = X[~fresh & approved]
    denied_people = X[~fresh & ~approved]
    if not (len(approved_people) and len(denied_people)):
        missing = "denied" if len(approved_people) else "approved"
        raise BadData(f"nobody among the {(~fresh).sum()} people to learn from was {missing}")
    approves, denies = classes[kind](approved_people, denied_people)
    must_approve = approves(X[fresh])
    must_deny = denies(X[fresh])
    # An approval where all rules deny, or a denial where all approve.
    n_contradictions = np.where(approved[fresh], must_deny, must_approve).sum()
    n_certain = (must_approve | must_deny).sum()
    unsure_share = 1 - n_certain / max(len(must_approve), 1)
    description = (
        f"a {kind.replace('_', '-')} rule: unsure about {unsure_share:.2%} of people, "
        f"{n_contradictions} of {n_certain:,} fresh decisions against it"
    )
    if n_contradictions:
        raise BadData(f"past decisions contradict the class of rules: {description}")
    return LearntRule(approves, denies, fresh, description)


def _threshold(approved: Array, denied: Array) -> tuple[Ask, Ask]:
    """Take every column and direction in which a threshold agrees; a region is where all do."""
    n_columns = approved.shape[1]
    # Every column upwards and downwards: "from 600 on" and "up to 600".
    directions = np.hstack([np.eye(n_columns), -np.eye(n_columns)])
    lowest_approved = (approved @ directions).min(axis=0)
    highest_denied = (denied @ directions).max(axis=0)
    agrees = highest_denied < lowest_approved
    if not agrees.any():
        raise BadData(
            "no threshold on one column explains these decisions; try 'half_space', or add the "
            "score that the rule looks at as a column"
        )
    directions = directions[:, agrees]
    lowest_approved = lowest_approved[agrees]
    highest_denied = highest_denied[agrees]
    return (
        lambda X: np.all(X @ directions >= lowest_approved, axis=1),
        lambda X: np.all(X @ directions <= highest_denied, axis=1),
    )


def _half_space(approved: Array, denied: Array) -> tuple[Ask, Ask]:
    """Enclose all separating hyperplanes in a box, by linear programmes; its ends decide.

    Hyperplanes are ``(u + V z) . x = b`` with u one separating direction and V its complement.
    Over a box of (z, b) the least and the largest ``(u + V z) . x - b`` have a closed form.
    """
    everybody = np.concatenate([approved, denied])
    centre = everybody.mean(axis=0)
    spread = everybody.std(axis=0) + 1e-300
    # w.x >= b for the approved, and -w.x >= -b for the denied
    rows = np.concatenate([approved - centre, centre - denied]) / spread
    sign = np.concatenate([np.ones(len(approved)), -np.ones(len(denied))])
    weights, offset = _widest_margin(rows, sign)
    u = weights / np.linalg.norm(weights)
    # Of the SVD of one row all right vectors but the first are orthogonal to it.
    complement = np.linalg.svd(u[None, :])[2][1:].T
    origin = _centre_of_nearest(rows, sign, weights, offset)
    box = _box_of_hyperplanes(rows - sign[:, None] * origin, sign, u, complement)
    if box is None:
        raise BadData(
            f"{len(approved)} approved and {len(denied)} denied people leave the half-space's "
            "direction open; learn from more"
        )
    low, high = box
    middle = (low + high) / 2.0
    hyperplanes = _Hyperplanes(
        centre=centre,
        spread=spread,
        origin=origin,
        normal=u + complement @ middle[:-1],
        offset=middle[-1],
        complement=complement,
        # A little wider, for the rounding of the linear programmes.
        half_width=(high - low) / 2.0 * (1.0 + 1e-9) + 1e-12,
    )
    return (
        lambda X: hyperplanes.value_at_end(X, 1.0) >= 0.0,
        lambda X: hyperplanes.value_at_end(X, -1.0) < 0.0,
    )


class _Hyperplanes(NamedTuple):
    """All hyperplanes of a box around the one with this ``normal`` and ``offset``.

    Points are centred and scaled first: ``(x - centre) / spread - origin``. ``half_width`` is that
    of the box, in the directions of ``complement`` and, last, of the offset.
    """

    centre: Array
    spread: Array
    origin: Array
    normal: Array
    offset: float
    complement: Array
    half_width: Array

    def value_at_end(self, X: Array, side: float) -> Array:
        """Return the least (side 1) or largest (side -1) ``w . x - b`` over the box."""
        x = (X - self.centre) / self.spread - self.origin
        doubt = np.abs(x @ self.complement) @ self.half_width[:-1] + self.half_width[-1]
        return np.asarray(x @ self.normal - self.offset - side * doubt)


def _widest_margin(rows: Array, sign: Array) -> tuple[Array, float]:
    """Return w and b of the hyperplane with the widest margin, ``|w| <= 1`` in every column."""
    n_rows, d = rows.shape
    # variables (w, b, margin)
    solution = linprog(
        np.append(np.zeros(d + 1), -1.0),
        A_ub=np.column_stack([-rows, sign, np.ones(n_rows)]),
        b_ub=np.zeros(n_rows),
        bounds=[(-1.0, 1.0)] * d + [(None, None), (None, 1.0)],
    ).x
    if solution is None or solution[-1] <= 0.0:
        raise BadData(
            "no half-space explains these decisions; give the classifier itself as 'accepts'"
        )
    return solution[:d], float(solution[d])


def _centre_of_nearest(rows: Array, sign: Array, weights: Array, offset: float) -> Array:
    """Return the middle of the people nearest to a hyperplane.

    Directions and offsets of hyperplanes are told apart best from there.
    """
    n_nearest = max(50, len(rows) // 50)
    nearest = np.argsort(np.abs(rows @ weights - sign * offset))[:n_nearest]
    return np.asarray((sign[nearest, None] * rows[nearest]).mean(axis=0))


def _box_of_hyperplanes(
    rows: Array, sign: Array, u: Array, complement: Array
) -> tuple[Array, Array] | None:
    """Return the least and largest (z, b) of all separating hyperplanes, None if unbounded."""
    d = rows.shape[1]
    constraints = np.column_stack([-rows @ complement, sign])
    ends = []
    for direction in np.vstack([np.eye(d), -np.eye(d)]):
        end = linprog(direction, A_ub=constraints, b_ub=rows @ u, bounds=(None, None)).fun
        if end is None:
            return None
        ends.append(end)
    return np.array(ends[:d]), -np.array(ends[d:])
