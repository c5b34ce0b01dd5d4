"""Every result can be seen and kept: HTML, picture, frame, plain data."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

import equipoise as eq
from equipoise import display
from equipoise.display import Displayable
from equipoise.errors import InvalidInput
from equipoise.finding import Finding, Interval, separation
from equipoise.simulation import Simulation
from tests.support.simulated import simulate_live

pytest.importorskip("matplotlib").use("Agg")

WORLD = eq.worlds.CellWorld.from_shares(
    {"<A>": (0.4, 0.1, 0.5, 0.5), "B & b": (0.2, 0.2, 0.6, 0.2)}
)
QUESTION = eq.Question("equal_opportunity", gamma=0.1, epsilon=0.2)


NAMES = ("Finding", "Check", "Plan", "Simulation", "Status", "History")
DRAWN = ("Finding", "Check", "Plan", "Simulation")


@cache
def results() -> dict[str, Displayable]:
    past = WORLD.past(4000, 0)
    history = eq.History.from_cells(past.cells)
    live = simulate_live(WORLD, QUESTION, eq.Costs(label=100), people=60)
    return {
        "Finding": eq.run(eq.AdaptiveAudit(history, QUESTION, eq.Costs()), WORLD),
        "Check": eq.check(history, QUESTION),
        "Plan": eq.plan(history, QUESTION, eq.Costs(), denied_rate=WORLD.r, trial_runs=2),
        "Simulation": eq.simulate("rs", WORLD, QUESTION, eq.Costs(), repeats=20, tau=30),
        "Status": live.status(),
        "History": history,
    }


class Outline(HTMLParser):
    """Note every tag and the text in between; complain about tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_itself_in_a_notebook(name: str) -> None:
    page = Outline(results()[name]._repr_html_())
    assert "a" not in page.tags, "a group's name is text, whatever it looks like"
    assert ("table" in page.tags) == (name != "Simulation")
    if name in ("Finding", "Check", "Status", "History"):
        assert "<A>" in page.text


@pytest.mark.parametrize("name", DRAWN)
def test_it_draws_itself_where_it_is_told(name: str) -> None:
    from matplotlib import pyplot

    drawn = results()[name].plot()
    assert drawn.get_xlabel()
    figure, own = pyplot.subplots()
    assert results()[name].plot(own) is own
    figure.canvas.draw()
    pyplot.close("all")


@pytest.mark.parametrize("name", sorted({*NAMES} - {*DRAWN}))
def test_what_has_no_picture_says_so(name: str) -> None:
    from matplotlib import pyplot

    with pytest.raises(InvalidInput, match=f"a {name} has no picture; draw what you need of its"):
        results()[name].plot()
    assert not pyplot.get_fignums(), "no empty figure is left behind"


@pytest.mark.parametrize("name", NAMES)
def test_it_becomes_a_frame_and_plain_data(name: str) -> None:
    result = results()[name]
    assert list(result.to_frame().columns) == list(result._rows()[0])
    assert len(result.to_frame()) == len(result._rows()) > 0
    json.dumps(result.to_dict(), allow_nan=False)  # type: ignore[attr-defined]


def test_frames_hold_the_numbers() -> None:
    runs, finding = results()["Simulation"], results()["Finding"]
    assert isinstance(runs, Simulation)
    assert runs.to_frame()["cost"].tolist() == runs.cost.tolist()
    assert isinstance(finding, Finding)
    first = finding.to_frame().iloc[0]
    assert (first["rate"], first["lower"], first["upper"]) == (
        "gap",
        finding.lower,
        finding.upper,
    )


def test_a_verdict_says_who_and_what_it_means() -> None:
    free = eq.check(
        WORLD.past(40_000, 0), eq.Question("demographic_parity", gamma=0.05, epsilon=0.07)
    )
    assert free.verdict == "UNFAIR"
    assert free.who == "the ranges do not overlap: B & b, below <A>"
    assert free.who.capitalize()[:20] in str(free)
    assert free.lower < free.question.threshold  # a board will ask how UNFAIR can be said
    assert "between 5 points and 12 points either answer is right" in free.meaning


def test_the_largest_difference_is_an_estimate_inside_the_range() -> None:
    rates = {"selection_rate": {"A": Interval(0.5, 0.7, 0.6), "B": Interval(0.3, 0.48, 0.58)}}
    found = Finding(
        eq.Question("demographic_parity"), eq.Verdict.UNFAIR, 0.05, 0.4, "so it is",
        rates=rates, decided_by=separation(rates), labels=7,
    )  # fmt: skip
    assert found.who == "largest estimated difference: B, 2 points below A"
    assert replace(found, estimate=0.05).who == "largest estimated difference: B, 5 points below A"
    assert "0 for 7 outcomes requested" in str(found)
    more = {"selection_rate": {**rates["selection_rate"], "C": Interval(0.0, 1.0)}}
    assert replace(found, rates=more).who == "the ranges do not overlap: B, below A"


def test_a_ratio_says_who_in_shares() -> None:
    asked = eq.Question("demographic_parity", gamma=0.1, compare="ratio")
    free = eq.check(WORLD.past(), asked)
    assert free.who == "the ranges do not overlap: B & b, below <A>"
    assert free.summary.startswith(
        "UNFAIR. Some group is approved more than 10% less often than another (error probability "
    )


def test_nobody_is_named_where_nobody_can_be() -> None:
    assert eq.check(WORLD.past(4000, 0), QUESTION).who == ""


def test_audits_print_what_they_are() -> None:
    audit = eq.AdaptiveAudit(WORLD.past(), QUESTION, eq.Costs())
    assert repr(audit) == (
        "<AdaptiveAudit of equal opportunity in 2 groups: no verdict yet, 0 labels, cost 0>"
    )


@pytest.mark.parametrize(
    ("name", "colour"),
    [
        ("ink", display.INK),
        ("muted", display.GREY),
        ("now", display.BLUE),
        ("fair", display.FAIR),
        ("unfair", display.UNFAIR),
        ("open", display.UNDECIDED),
    ],
)
def test_pictures_and_pages_have_the_same_colours(name: str, colour: str) -> None:
    style = (Path(display.__file__).parent / "report/templates/look.css").read_text("utf-8")
    first_value = re.search(rf"--{name}: (#[0-9a-f]+);", style)
    assert first_value is not None
    assert first_value.group(1) == colour
