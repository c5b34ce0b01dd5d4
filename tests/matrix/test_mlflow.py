"""The recipe for MLflow, as the page shows it, with the real package."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pytest

from tests.acceptance.documents import blocks

pytestmark = pytest.mark.filterwarnings("ignore")  # of its own dependencies


def test_a_finding_is_kept_in_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'kept.db'}")
    names: dict[str, object] = {}
    page = "docs/how-to/ask-tell.md"
    for block in blocks(page, "python"):
        exec(compile(block.text, page, "exec"), names)
    (run,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    finding, question = names["finding"], names["question"]
    assert run.data.tags["verdict"] == finding.verdict  # type: ignore[attr-defined]
    assert run.data.metrics["gap_upper"] == finding.upper  # type: ignore[attr-defined]
    assert run.data.params["metric"] == question.metric  # type: ignore[attr-defined]
    kept = {item.path for item in mlflow.artifacts.list_artifacts(run_id=run.info.run_id)}
    assert kept == {"finding.json", "finding.png"}
