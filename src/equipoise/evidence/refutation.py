"""Refutation: which null cells of either wrong answer still stand, by what the log has counted.

Bets are fixed, so the evidence against a cell is a function of counts: of labels that are 0, that
are 1, and that are unknown because they are pending or were withdrawn (these count with the smaller
of their factors). A cell is refuted if this function, of what is known now, reaches the bar over
all requests so far, or over those up to the end of an earlier epoch (since the last file of random
accepts came). Epochs end at plans, and whenever requests have grown by a tenth. After the first
pending request few of these ends are looked at. Each of these values is at most that of all true
outcomes, which is one supermartingale in request order; so it does not matter who decides which
outcomes are told, or when.

Everything here follows from the log, and is forgotten when an outcome is replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf, log

import numpy as np

from equipoise._arrays import Array, Flags, Ints
from equipoise.evidence.null_cells import (
    BoxParts,
    CellIndex,
    CornerCells,
    NullCells,
    shared_parts,
)
from equipoise.evidence.request_log import PENDING, CountPath, RequestLog
from equipoise.evidence.row_answers import RowAnswers
from equipoise.evidence.wrong_answers import WrongAnswers
from equipoise.question import Verdict

N_HARDEST_CELLS = 8  # of a cover that are looked at first
N_CUT_AT_ONCE = 16  # boxes, those with the least evidence first
_LOST_EVIDENCE = 1e-20  # evidence that will hardly recover
_ONE_RUN = np.zeros(1, dtype=np.intp)  # the starts of runs, where all cells are one run


@dataclass(frozen=True)
class AnswerEvidence:
    """The evidence for an answer: the smallest e-value against the ways in which it is wrong.

    If the answer is wrong, ``e_value`` ever reaches ``needed`` with at most the error probability
    of the answer, however often one looks. An answer is given once it does.
    """

    e_value: float
    needed: float


@dataclass
class CoverProgress:
    """A cover of a wrong answer, null cells that hold all of it, and how far it is refuted.

    Attributes
    ----------
    cells
        All cells of the cover.
    bar
        A cell is refuted when the evidence against it reaches this: the bar of its wrong answer.
    standing
        The cells that were not refuted by the end of an epoch.
    hardest
        Those with the least evidence when all were last looked at, the latest first.
    parts
        The parts of boxes, where a box is cut before it keeps an answer from being given.
    hardest_parts
        Parts with the least evidence when all boxes were last looked at, the latest first.
    gain
        The log gain of bets from scored observations of the epochs that are settled.
    last_look
        The counts at which all cells that stand were looked at last, and the evidence against each.
    """

    cells: NullCells
    bar: float
    standing: Ints
    hardest: tuple[int, ...] = ()
    gain: Array = field(default_factory=lambda: np.zeros(0))
    last_look: tuple[Array, Array] | None = None
    parts: BoxParts | None = None
    hardest_parts: CornerCells | None = None

    def keep(self, stands: Flags) -> None:
        """Let only some of the cells go on standing."""
        self.standing = self.standing[stands]
        standing = set(self.standing.tolist())
        self.hardest = tuple(cell for cell in self.hardest if cell in standing)
        # The evidence that was computed last stays right for the cells that go on standing.
        if self.last_look is not None:
            counts, evidence = self.last_look
            self.last_look = counts, evidence[stands]

    def remember_hardest(self, cell: int) -> None:
        """Put a cell in front of the hardest ones."""
        remaining = [earlier for earlier in self.hardest if earlier != cell]
        self.hardest = (cell, *remaining[: N_HARDEST_CELLS - 1])

    def remember_hardest_part(self, part: CornerCells) -> None:
        """Put a part of a box in front of the hardest ones."""
        if self.hardest_parts is not None:
            latest = np.arange(min(len(self.hardest_parts), N_HARDEST_CELLS - 1))
            part = CornerCells.joined([part, self.hardest_parts.select(latest)])
        self.hardest_parts = part


@dataclass(frozen=True)
class JoinedCells:
    """The hardest parts of boxes of all covers of a wrong answer as one cover.

    They are those of every cover (``by_cover``) in one run for each.
    """

    by_cover: list[CornerCells]
    cover: CoverProgress
    run_starts: Ints


class CoveredSet:
    """All covers of a wrong answer.

    The wrong answer is refuted when the least evidence against a cell that stands, summed over its
    covers, reaches the bar (their number over the error level): if it were true, the evidence
    against its cell in each cover would ever add up to that with probability at most this level.
    """

    def __init__(self, covers: tuple[NullCells, ...], level: float, *, cuts_boxes: bool) -> None:
        # If this answer is true after all, the truth has a cell in every cover. The mean of the
        # evidence against these cells is a supermartingale from 1, so it ever reaches 1/level with
        # probability at most the level, and the sum ever reaches this bar (guarantees, 3.5).
        bar = len(covers) / level
        self.covers = [CoverProgress(cells, bar, np.arange(len(cells))) for cells in covers]
        for cover in self.covers:
            if cuts_boxes and isinstance(cover.cells, CornerCells):
                cover.parts = shared_parts(cover.cells)
        self._joined: JoinedCells | None = None

    def restart(self) -> None:
        """Let all cells stand again. Boxes stay cut: their parts rest on no outcome."""
        self.covers = [
            CoverProgress(cover.cells, cover.bar, np.arange(len(cover.cells)), parts=cover.parts)
            for cover in self.covers
        ]
        self._joined = None

    @property
    def bar(self) -> float:
        """What the evidence has to reach, that against a cell or the sum over covers."""
        return self.covers[0].bar

    def joined_hardest(self) -> JoinedCells | None:
        """Return the hardest parts of boxes of all covers as one; None if a cover has none."""
        by_cover = [cover.hardest_parts for cover in self.covers]
        hardest = [parts for parts in by_cover if parts is not None and len(parts)]
        if len(hardest) < len(self.covers):
            return None
        joined = self._joined
        # Parts are replaced and never changed, so the same objects are the same parts.
        if joined is None or any(
            new is not old for new, old in zip(hardest, joined.by_cover, strict=True)
        ):
            cells = CornerCells.joined(hardest)
            run_starts = np.cumsum([0, *(len(parts) for parts in hardest[:-1])])
            cover = CoverProgress(cells, self.bar, np.arange(len(cells)))
            joined = JoinedCells(hardest, cover, run_starts)
            self._joined = joined
        return joined


class Refutation:
    """How far both wrong answers are refuted by what a log has counted.

    Parameters
    ----------
    wrong
        The wrong answers to refute.
    log
        What was asked and told.

    Attributes
    ----------
    unfair_set, fair_set
        What has to be refuted for FAIR, and for UNFAIR.
    """

    def __init__(self, wrong: WrongAnswers | RowAnswers, log: RequestLog) -> None:
        self._wrong = wrong
        self._log = log
        self._begin()

    def _begin(self) -> None:
        wrong = self._wrong
        # Bets that are sized anew at every plan are followed against whole boxes only.
        cuts_boxes = not self._log.epochs.rescales_bets
        self.unfair_set = CoveredSet(wrong.unfair_covers(), wrong.level_fair, cuts_boxes=cuts_boxes)
        self.fair_set = CoveredSet(wrong.fair_covers(), wrong.level_unfair, cuts_boxes=cuts_boxes)
        self._settled = 0  # epochs by whose ends the cells that stand were settled last
        self._stale = 0  # the first epoch whose end was not looked at as outcomes stand now

    def restart(self) -> None:
        """Let all cells stand, whatever was recorded."""
        # The covers are kept: a server has many audits, and the covers of few are remembered
        # outside of them.
        self.unfair_set.restart()
        self.fair_set.restart()
        self._settled = 0
        self._stale = 0

    def __getstate__(self) -> tuple[WrongAnswers | RowAnswers, RequestLog]:
        """Leave out what follows from the rest: cells are many, and made again from the past."""
        return self._wrong, self._log

    def __setstate__(self, state: tuple[WrongAnswers | RowAnswers, RequestLog]) -> None:
        wrong, log = state
        self._wrong = wrong
        self._log = log
        self._begin()

    @property
    def covers(self) -> list[CoverProgress]:
        """All covers, that of the UNFAIR set first."""
        return [*self.unfair_set.covers, *self.fair_set.covers]

    def mark_stale(self, epoch: int) -> None:
        """Note that outcomes of an epoch, and perhaps of later ones, have changed."""
        self._stale = min(self._stale, epoch)

    # -- verdicts ---------------------------------------------------------------------------------

    def first_verdict(self, path: CountPath) -> tuple[int, Verdict | None]:
        """Return the first look that gives a verdict, and that; without one, how many there are."""
        epochs = self._log.epochs
        # Else each look would repeat the epoch's end. That costs less where there are many cells.
        has_new_epoch = self._settled < epochs.last
        if has_new_epoch and len(self._log.labels) == 2 and not epochs.n_pending.any():
            self.settle()
        fair = self._first_refuting(self.unfair_set, path)
        unfair = self._first_refuting(self.fair_set, path)
        if min(fair, unfair) == len(path):
            return len(path), None
        # If one look refutes both, FAIR is said. Any fixed rule keeps both levels, because either
        # answer has to be refuted at its own.
        return (fair, Verdict.FAIR) if fair <= unfair else (unfair, Verdict.UNFAIR)

    def _first_refuting(self, wrong_set: CoveredSet, path: CountPath) -> int:
        """Return the first look at which a wrong answer is refuted, or how many there are.

        What keeps an answer from being refuted is mostly one of the cells that did so before, the
        hardest. Only if the evidence against them suffices all others are looked at, and the one
        with the least evidence becomes one of the hardest.
        """
        looks = np.arange(len(path))
        while len(looks):
            evidence = self._against_hardest(wrong_set, path.select(looks))
            looks = looks[evidence >= wrong_set.bar]
            if len(looks):
                self.settle()
                first_look = path.select(looks[:1])
                is_single = len(wrong_set.covers) == 1
                least_by_cover = []
                for cover in wrong_set.covers:
                    least = self._least_evidence(cover, first_look, is_single=is_single)
                    least_by_cover.append(least)
                if sum(least_by_cover) >= wrong_set.bar:
                    return int(looks[0])
                # The cell that stood in the way is among the hardest now, so the next round of the
                # loop skips all looks at which it stands in the way again.
                looks = looks[1:]
        return len(path)

    def _against_hardest(self, wrong_set: CoveredSet, path: CountPath) -> Array:
        """Return the sum over covers of the least evidence against one of their hardest cells.

        It is infinite if all of a cover's were refuted before.
        """
        covers = wrong_set.covers
        if covers[0].parts is not None:
            joined = wrong_set.joined_hardest()
            if joined is None:
                return np.full(len(path), inf)
            cover = joined.cover
            least = self._least_by_run(cover, cover.standing, path, joined.run_starts)
            return np.asarray(least.sum(axis=1))
        if not all(cover.hardest for cover in covers):
            return np.full(len(path), inf)
        by_cover = [
            self._least_by_run(cover, np.array(cover.hardest), path, _ONE_RUN) for cover in covers
        ]
        return np.asarray(np.concatenate(by_cover, axis=1).sum(axis=1))

    def _least_by_run(
        self, cover: CoverProgress, cells: Ints, path: CountPath, run_starts: Ints
    ) -> Array:
        """Return the least evidence in every run of cells, shape (looks, runs).

        Cells that were refuted before are left out; it is infinite if all of a run were.
        """
        evidence = cover.cells.evidence(self.log_wealth(cover, cells, path))
        # Ends of epochs are looked at again only after an outcome of an earlier epoch came, and
        # never those before a file of random accepts: its labels were not there yet (3.18).
        if max(self._stale, self._log.file_epoch) < self._log.epochs.last:
            self._leave_out_refuted(cover, cells, evidence, run_starts)
        return np.asarray(np.minimum.reduceat(evidence, run_starts, axis=1))

    def _leave_out_refuted(
        self, cover: CoverProgress, cells: Ints, evidence: Array, run_starts: Ints
    ) -> None:
        """Make the evidence infinite against cells that were refuted by an earlier epoch's end.

        If there is one look, only the least of every run matters, and the next one if it is left
        out: only these are checked.
        """
        run = np.searchsorted(run_starts, np.arange(len(cells)), side="right") - 1
        is_unchecked = np.ones(len(cells), dtype=bool)
        while is_unchecked.any():
            checked = np.flatnonzero(is_unchecked)
            if len(evidence) == 1:
                # By run, and in each by evidence: a cell is the least where a new run begins.
                order = np.lexsort((evidence[0], run))
                least = order[np.diff(run[order], prepend=-1) > 0]
                checked = least[is_unchecked[least] & np.isfinite(evidence[0, least])]
            if not len(checked):
                break
            is_unchecked[checked] = False
            for at_epoch_end in self._evidence_at_epoch_ends(cover, cells[checked]):
                evidence[:, checked[at_epoch_end >= cover.bar]] = inf

    def _least_evidence(self, cover: CoverProgress, look: CountPath, *, is_single: bool) -> float:
        """Return the least evidence against a cell that stands; infinite if none does.

        Of a single cover any evidence below the bar will do.
        """
        if not len(cover.standing):
            return inf
        evidence = self._standing_evidence(cover, look)
        if cover.parts is not None:
            counts = look.label_counts[0]
            # Of a single cover one standing part settles the question; of several the least counts.
            enough = cover.bar if is_single else 0.0
            least, hardest = self._least_part(cover, cover.parts, evidence, counts, enough)
            if hardest is not None:
                cover.remember_hardest_part(hardest)
            return inf if hardest is None else least
        place = int(evidence.argmin())
        cover.remember_hardest(int(cover.standing[place]))
        return inf if evidence[place] >= cover.bar else float(evidence[place])

    def _least_part(
        self,
        cover: CoverProgress,
        parts: BoxParts,
        box_evidence: Array,
        counts: Array,
        enough: float = 0.0,
    ) -> tuple[float, CornerCells | None]:
        """Return the least evidence against a part that stands, and the part.

        It is the bar, and None, if there is none below the bar. A part below ``enough`` will do.
        ``box_evidence`` is that against the boxes that stand. No part has less of it than its
        box, so boxes are cut, those with the least evidence first, until the next one has more
        than some part.
        """
        least = cover.bar
        hardest = None
        order = np.argsort(box_evidence)
        for start in range(0, len(order), N_CUT_AT_ONCE):
            boxes = order[start : start + N_CUT_AT_ONCE]
            if box_evidence[boxes[0]] >= least or least < enough:
                break
            cells = parts.cut(cover.standing[boxes])
            evidence = cells.evidence_of_counts(counts, np.arange(len(cells)))
            candidates = np.argsort(evidence)
            candidates = candidates[evidence[candidates] < least]
            standing = self._first_standing(cells, candidates, cover.bar)
            if len(standing):
                least = float(evidence[standing[0]])
                hardest = cells.select(standing)
        return least, hardest

    def _first_standing(self, cells: CornerCells, candidates: Ints, bar: float) -> Ints:
        """Return the first candidate that no epoch's end refutes, alone; none if there is none."""
        # Few are examined at a time: mostly one of the first stood at all ends of epochs.
        for first in range(0, len(candidates), N_HARDEST_CELLS):
            examined = candidates[first : first + N_HARDEST_CELLS]
            standing = examined[self._stood_at_ends(cells.select(examined), bar)]
            if len(standing):
                return standing[:1]
        return candidates[:0]

    def _stood_at_ends(self, cells: CornerCells, bar: float) -> Flags:
        """Say which boxes no epoch's end refutes, as outcomes are known now."""
        epochs = self._log.epochs
        first = self._log.file_epoch
        remembered = first + np.flatnonzero(epochs.remembered_ends()[first:])
        # axes: end of an epoch, group, kind of label
        counts_at_ends = epochs.label_counts.cumsum(axis=0)[remembered]
        evidence = cells.evidence_of_counts(counts_at_ends, np.arange(len(cells)))
        return np.asarray((evidence < bar).all(axis=0))

    # -- where it stands --------------------------------------------------------------------------

    def evidence_for(self, answer: Verdict) -> AnswerEvidence:
        """Return the evidence that FAIR, or UNFAIR, is right.

        It is the least evidence against a null cell of the wrong answer that stands, the mean over
        its covers. Once no cell stands it is what is needed.
        """
        self.settle()
        wrong_set = self.unfair_set if answer is Verdict.FAIR else self.fair_set
        n_covers = len(wrong_set.covers)
        needed = wrong_set.bar / n_covers
        look = self._log.current_counts()
        e_values = []
        for cover in wrong_set.covers:
            # A cover holds all of the wrong answer, so one whose cells are all refuted suffices,
            # whatever the other covers say.
            if not len(cover.standing):
                return AnswerEvidence(needed, needed)
            evidence = self._standing_evidence(cover, look)
            if cover.parts is None:
                e_values.append(float(evidence.min()))
            else:
                counts = look.label_counts[0]
                least, _ = self._least_part(cover, cover.parts, evidence, counts)
                e_values.append(least)
        return AnswerEvidence(sum(e_values) / n_covers, needed)

    def missing_nats(self, cover: CoverProgress, look: CountPath) -> Array:
        """Return the nats that each of the cells that stand lacks."""
        self.settle()
        with np.errstate(divide="ignore"):
            nats = np.log(self._standing_evidence(cover, look))
        return np.asarray(log(cover.bar) - nats)

    def would_decide(self, factor: float) -> bool:
        """Say whether so many times the labels would decide, if all were like those so far.

        It is a guess, by which an audit gives up. Pending outcomes are left out, since they would
        count against every bet.
        """
        # Bets are fixed, so the evidence can be read at counts that nobody has seen yet.
        counts = factor * self._log.without_pending(self._log.current_counts()).label_counts[0]
        for wrong_set in (self.unfair_set, self.fair_set):
            # As for a verdict: each cover counts with the least evidence against a cell of it.
            sum_over_covers = 0.0
            for cover in wrong_set.covers:
                evidence = cover.cells.evidence_of_counts(counts, cover.standing)
                if cover.parts is None:
                    least = float(evidence.min(initial=cover.bar))
                else:
                    least, _ = self._least_part(cover, cover.parts, evidence, counts)
                sum_over_covers += least
            if sum_over_covers >= wrong_set.bar:
                return True
        return False

    def is_undecidable(self, low: Array, high: Array) -> bool:
        """Say whether all unknowns in a box allow both wrong answers: then no label decides.

        It happens where the past data are so few that they leave room of about epsilon. No label
        decides either once all bets against some cell of every cover are lost. Pending
        outcomes are left out here, since they may still turn out well for every bet.
        """
        if self._wrong.both_allowed(low, high):
            return True
        look = self._log.current_counts()
        # Where bets are sized anew, pending outcomes cannot be taken out of what bets have become.
        if self._log.epochs.rescales_bets and PENDING in self._log.outcomes:
            return False
        look = self._log.without_pending(look)
        return all(self._has_lost(cover, look) for cover in self.covers)

    def _has_lost(self, cover: CoverProgress, look: CountPath) -> bool:
        """Say whether all bets against some cell that stands are lost."""
        missing = self.missing_nats(cover, look)  # which settles what stands
        # No part has less evidence than its box, so only lost boxes can have lost parts.
        lost = cover.standing[missing > log(cover.bar / _LOST_EVIDENCE)]
        if cover.parts is None or not len(lost):
            return len(lost) > 0
        for start in range(0, len(lost), N_CUT_AT_ONCE):
            cells = cover.parts.cut(lost[start : start + N_CUT_AT_ONCE])
            evidence = cells.evidence_of_counts(look.label_counts[0], np.arange(len(cells)))
            lost_parts = np.flatnonzero(evidence < _LOST_EVIDENCE)
            if self._stood_at_ends(cells.select(lost_parts), cover.bar).any():
                return True
        return False

    # -- evidence ---------------------------------------------------------------------------------

    def log_wealth(self, cover: CoverProgress, cells: CellIndex, path: CountPath) -> Array:
        """Return the log of what bets against some cells have become by each look."""
        gain = self._past_gain(cover, cells, self._log.epochs.last)
        for scored in path.scored:
            gain = gain + cover.cells.scored_gain(scored.group, scored.batch, scored.n_seen, cells)
        return cover.cells.log_wealth(path.label_counts, cells, gain)

    def _standing_evidence(self, cover: CoverProgress, look: CountPath) -> Array:
        """Return the evidence at one look against all cells that stand."""
        if self._log.epochs.rescales_bets:
            evidence = cover.cells.evidence(self.log_wealth(cover, cover.standing, look))
            return np.asarray(evidence[0])
        counts = look.label_counts[0]
        # Bets of a fixed size make evidence a function of counts: equal counts, equal evidence. The
        # cells that stand are those of last time, because `keep` cuts both alike.
        if cover.last_look is None or not np.array_equal(cover.last_look[0], counts):
            evidence = cover.cells.evidence_of_counts(counts, cover.standing)
            cover.last_look = counts.copy(), evidence
        return cover.last_look[1]

    def _evidence_at_epoch_ends(self, cover: CoverProgress, cells: Ints) -> Iterator[Array]:
        """Yield the evidence, as known now, at the end of every epoch that is stale."""
        epochs = self._log.epochs
        first = max(self._stale, self._log.file_epoch)
        if first >= epochs.last:
            return
        remembered = first + np.flatnonzero(epochs.remembered_ends()[first:])
        if not len(remembered):
            return
        counts_at_ends = epochs.label_counts.cumsum(axis=0)
        # Bets of a fixed size depend on the counts alone, so that all ends are one step.
        if not epochs.rescales_bets:
            yield from cover.cells.evidence_of_counts(counts_at_ends[remembered], cells)
            return
        gain = self._past_gain(cover, cells, first)
        for epoch in range(first, epochs.last):
            gain = gain + self._gain(cover, cells, [epoch])
            if epoch in remembered:
                log_wealth = cover.cells.log_wealth(counts_at_ends[epoch], cells, gain)
                yield cover.cells.evidence(log_wealth)

    def settle(self) -> None:
        """Bring the cells that stand in line with outcomes of past epochs that came since."""
        last_epoch = self._log.epochs.last
        # Ends of epochs that are not stale were looked at with their outcomes as they are now.
        if self._stale < last_epoch:
            for cover in self.covers:
                self._settle_cover(cover)
        self._settled = last_epoch
        self._stale = last_epoch

    def _settle_cover(self, cover: CoverProgress) -> None:
        epochs = self._log.epochs
        stands = np.ones(len(cover.standing), dtype=bool)
        evidence = None
        for evidence in self._evidence_at_epoch_ends(cover, cover.standing):
            stands &= evidence < cover.bar
        # An epoch that has just begun ends the last one where it stands now.
        is_last_end = not epochs.label_counts[-1].any() and bool(epochs.remembered_ends()[-1])
        if evidence is not None and not epochs.rescales_bets and is_last_end:
            cover.last_look = epochs.total_label_counts(), evidence
        cover.keep(stands)
        # Parts are no places in the cover, so they are looked at by themselves.
        if cover.hardest_parts is not None:
            stood = self._stood_at_ends(cover.hardest_parts, cover.bar)
            cover.hardest_parts = cover.hardest_parts.select(np.flatnonzero(stood))
        cover.gain = np.asarray(self._past_gain(cover, slice(None), epochs.last))

    # -- observations that bets are sized for -----------------------------------------------------

    def _past_gain(self, cover: CoverProgress, cells: CellIndex, epoch: int) -> Array | float:
        """Return the log gain of bets from scored observations of all epochs before one."""
        if not self._log.epochs.rescales_bets:
            return 0.0
        # What is stored holds all epochs before `_settled`. It serves if the sum goes as far, and
        # if no outcome of these epochs has come since.
        first = self._settled if self._settled <= min(epoch, self._stale) else 0
        gain = cover.gain[..., cells, :] if first else cover.cells.no_gain(cells)
        return gain + self._gain(cover, cells, range(first, epoch))

    def _gain(self, cover: CoverProgress, cells: CellIndex, epochs: Iterable[int]) -> Array | float:
        """Return the log gain of bets from scored observations of some epochs."""
        gain: Array | float = 0.0
        for group, batch in self._log.scored_batches(epochs):
            n_seen = np.array([len(batch.low)])
            gain = gain + cover.cells.scored_gain(group, batch, n_seen, cells)[0]
        return gain
