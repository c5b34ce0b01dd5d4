"""Uploaded tables: what is small and swells is refused, what is large and honest is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from equipoise.service import table_reader
from equipoise.service.job_process import JobFailed, JobProcess
from tests.profiles import quick
from tests.service.attacking import form_key, log_in
from tests.support.hmda import write_files
from tests.support.postgres import in_memory
from tests.support.serving import ASK, Served, serving

COLUMNS = {"group": "g", "decision": "d", "outcome": "o"}
LIMIT = "m.limit_resources(300 << 20, 20)"


@pytest.fixture(scope="module")
def limited() -> Iterator[Served]:
    """A server that reads tables in 300 MB and 20 s."""
    limits = {"read_memory": 300 << 20, "read_seconds": 20}
    with TemporaryDirectory(dir=in_memory()) as directory, serving(directory, **limits) as server:
        yield server


def send(browser: httpx.Client, key: str, name: str, content: bytes) -> httpx.Response:
    form = {"form_key": key, **COLUMNS}
    return browser.post("/check", data=form, files={"table": (name, content)}, timeout=300.0)


def swollen() -> bytes:
    """Return a Parquet file of a few kilobytes that holds 400 GB of text."""
    rows = 400_000
    texts = pa.array(["A" * 1_000_000 + str(i) for i in range(8)])
    places = pa.array(np.arange(rows, dtype=np.int32) % 8)
    ones = pa.array(np.ones(rows, dtype=np.int8))
    groups = pa.DictionaryArray.from_arrays(places, texts)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"g": groups, "d": ones, "o": ones}), sink, compression="zstd")
    made: bytes = sink.getvalue().to_pybytes()
    return made


def test_a_small_file_that_swells_is_refused_and_holds_up_nobody(limited: Served) -> None:
    """d3163f9 read such a file in a thread of the server, which took 4 GB and more."""
    limited.create("meanwhile")
    content = swollen()
    assert len(content) < 50_000
    browsers = [log_in(limited, role) for role in ("auditor", "approver", "regulator")]
    keys = [form_key(browser.get("/check").text) for browser in browsers]
    with ThreadPoolExecutor(6) as threads:
        sent = [threads.submit(send, browsers[i % 3], keys[i % 3], "x.parquet", content)
                for i in range(6)]  # fmt: skip
        for i in range(20):
            assert limited.send("meanwhile", "ask", str(i), **ASK).status_code == 200
        answers = [one.result() for one in sent]
    # One at a time per person: whoever sends another meanwhile is told to wait.
    assert {answer.status_code for answer in answers} <= {422, 503}
    refused = [answer for answer in answers if answer.status_code == 422]
    assert len(refused) >= 3
    assert all("takes more than 300 MB or 20 s" in answer.text for answer in refused)
    peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
    assert int(peak) < 3 << 20  # kilobytes; the server is a thread of this process


def test_a_table_that_takes_for_ever_is_given_up(limited: Served) -> None:
    browser = log_in(limited)
    key, rows = form_key(browser.get("/check").text), quick(300_000, full=30_000_000)
    table = pa.table({name: pa.array(np.zeros(rows, dtype=np.int8)) for name in "gdo"})
    texts = {name: table[name].cast(pa.string()).dictionary_encode() for name in "gdo"}
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(texts), sink, compression="zstd")
    answer = send(browser, key, "long.parquet", sink.getvalue().to_pybytes())
    assert answer.status_code in (200, 422)  # read in time, or given up; never left hanging


def test_jobs_have_limits_of_their_own() -> None:
    limits = "[resource.getrlimit(k)[0] for k in (resource.RLIMIT_CPU, resource.RLIMIT_DATA)]"
    program = f"import resource, equipoise._job_program as m; {LIMIT}; print({limits})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert json.loads(done.stdout) == [20, 600 << 20]


def test_the_reader_outlives_its_jobs_and_is_started_again_if_it_was_killed(
    tmp_path: Path,
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("g,d,o\nA,1,1\nA,0,\nB,1,0\nB,0,\n")
    limits = {"memory": 300 << 20, "seconds": 20}
    job = {"path": str(table), "folder": str(tmp_path), "options": COLUMNS, **limits}
    reader = JobProcess(Path(table_reader.__file__))
    found = reader.answer(job)
    assert set(found["found"]["cells"]) == {"A", "B"}
    first = reader.pid
    threads = Path(f"/proc/{first}/task")
    assert len([*threads.iterdir()]) == 1  # a process with threads cannot be forked safely
    assert reader.answer({**job, "memory": 0}) is None
    assert reader.answer(job) == found
    assert reader.pid == first
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert reader.answer(job) == found
    second = reader.pid
    assert second != first
    reader.end_jobs()  # there are none
    assert reader.pid == second
    with pytest.raises(JobFailed, match="KeyError: 'folder'"):
        reader.answer(limits)
    reader.close()
    assert reader.pid is None


@pytest.mark.parametrize("megabytes", quick([2], full=[200]))
def test_a_large_honest_file_is_read(served: Served, megabytes: int) -> None:
    rng, rows = np.random.default_rng(0), 21_500 * megabytes
    decision, outcome = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    group = rng.integers(0, 2, rows)
    lines = (
        f"{i},applicant {i * 7919 % 1_000_003:>12},street {i % 977:>8},{'AB'[group[i]]},"
        f"{decision[i]},{outcome[i] if decision[i] else ''}\n"
        for i in range(rows)
    )
    content = ("id,name,address,g,d,o\n" + "".join(lines)).encode()
    assert len(content) >= megabytes << 20
    browser = log_in(served)
    answer = send(browser, form_key(browser.get("/check").text), "honest.csv", content)
    assert answer.status_code == 200, answer.text[:2000]
    assert f"2 groups, {rows:,} people" in answer.text


def test_rows_that_swell_are_refused_before_they_reach_the_server(limited: Served) -> None:
    limited.create("rows")
    browser = log_in(limited)
    key = {"form_key": form_key(browser.get("/audits/rows").text)}
    people = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(20_000, dtype=np.int32)), pa.array(["p" * 4000])
    )
    sink = pa.BufferOutputStream()
    ones = pa.array(np.ones(20_000, dtype=np.int8))
    pq.write_table(pa.table({"person": people, "outcome": ones}), sink)
    files = {"table": ("outcomes.parquet", sink.getvalue().to_pybytes())}
    answer = browser.post("/audits/rows/upload", data={**key, "what": "outcomes"}, files=files)
    assert answer.status_code == 422
    assert "takes more than 300 MB or 20 s" in answer.text


def test_outcomes_of_a_second_file_are_joined(limited: Served, tmp_path: Path) -> None:
    lar, performance = write_files(tmp_path, rows=1000)
    browser = log_in(limited)
    form = {
        "form_key": form_key(browser.get("/check").text),
        "group": "derived_race",
        "decision": "action_taken",
        "outcome": "loan_status",
        "on": "uli",
        "positive_decision": "1",
        "negative_decision": "3",
        "positive_outcome": "Repaid",
        "missing_values": "2; 4; 5; 6; 8",
        "undecided": "leave_out",
        "missing_group": "not stated",
        "metric": "equal_opportunity",
    }
    files = {
        "table": ("lar.csv", lar.read_bytes()),
        "outcomes_table": ("performance.csv", performance.read_bytes()),
    }
    answer = browser.post("/check", data=form, files=files, timeout=300.0)
    assert answer.status_code == 200, answer.text
    assert "<dt>Rows read</dt><dd>1,000</dd>" in answer.text
    assert "25 rows of " in answer.text
    assert "/tmp" not in answer.text
