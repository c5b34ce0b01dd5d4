"""Ask one toolkit for the difference of true positive rates: ``python toolkits.py NAME FILE``.

Run by ``comparison.py`` inside that toolkit's own environment, where Equipoise is not installed.
Each function calls its toolkit as the toolkit's documentation does. Prints JSON.
"""

from __future__ import annotations

import json
import logging
import sys
import warnings
from importlib.metadata import version

import pandas as pd


def fairlearn(people: pd.DataFrame) -> float:
    """MetricFrame with true_positive_rate."""
    from fairlearn.metrics import MetricFrame, true_positive_rate

    frame = MetricFrame(
        metrics=true_positive_rate,
        y_true=people.outcome,
        y_pred=people.decision,
        sensitive_features=people.group,
    )
    return float(frame.difference())


def aequitas(people: pd.DataFrame) -> float:
    """Audit, and the tpr of its metrics."""
    from aequitas import Audit

    table = people.rename(columns={"decision": "score", "outcome": "label"})
    audit = Audit(table, sensitive_attribute_column=["group"], reference_groups={"group": "White"})
    audit.audit()
    return float(audit.metrics.tpr.max() - audit.metrics.tpr.min())


def aif360(people: pd.DataFrame) -> float:
    """equal_opportunity_difference of its scikit-learn interface."""
    from aif360.sklearn.metrics import equal_opportunity_difference

    return abs(
        float(
            equal_opportunity_difference(
                people.outcome, people.decision, prot_attr=people.group, priv_group="White"
            )
        )
    )


def veritastool(people: pd.DataFrame) -> float:
    """BaseClassification with equal_opportunity."""
    from veritastool.model.model_container import ModelContainer
    from veritastool.usecases.base_classification import BaseClassification

    model = ModelContainer(
        y_true=people.outcome.to_numpy(),
        y_pred=people.decision.to_numpy(),
        p_grp={"group": ["White"]},
        protected_features_cols=people[["group"]],
        model_type="classification",
        model_name="lender",
        pos_label=[1],
        neg_label=[0],
    )
    case = BaseClassification(
        model_params=[model], fair_threshold=0.1, fair_metric_name="equal_opportunity"
    )
    case.evaluate(output=False)
    return float(case.fair_metric_obj.result["group"]["fair_metric_values"]["equal_opportunity"][0])


def oxonfair(people: pd.DataFrame) -> float:
    """group_metrics.equal_opportunity."""
    from oxonfair.utils import group_metrics

    return float(
        group_metrics.equal_opportunity(
            people.outcome.to_numpy(), people.decision.to_numpy(), people.group.to_numpy()
        )[0]
    )


TOOLKITS = {f.__name__: f for f in (fairlearn, aequitas, aif360, veritastool, oxonfair)}


def main(name: str, path: str) -> None:
    """Print what the toolkit answers, or the first line of its error."""
    logging.disable(logging.CRITICAL)
    people = pd.read_csv(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            said = {"answer": TOOLKITS[name](people)}
        except Exception as error:  # whatever a toolkit says of such data is its answer
            said = {"error": f"{type(error).__name__}: {error}"}
        except SystemExit as error:
            said = {"error": f"exits: {error}"}
    about = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    print(json.dumps({**said, "version": version(name), "warnings": about}))


if __name__ == "__main__":
    main(*sys.argv[1:])
