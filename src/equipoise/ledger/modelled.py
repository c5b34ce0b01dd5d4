"""A mixture model as plain data, so that Exp-Audit can be replayed from its first event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from equipoise import mixture
from equipoise.errors import BadData
from equipoise.mixture.model import MixtureModel
from equipoise.mixture.truncated import Diagnostics, TruncatedFit

__all__ = ["model_from_data", "model_to_data"]

CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        Diagnostics,
        TruncatedFit,
        mixture.ContinuousBernoulli,
        mixture.ContinuousPoisson,
        mixture.Exponential,
        mixture.Gaussian,
        mixture.Weibull,
    )
}


def model_to_data(model: MixtureModel) -> dict[str, Any]:
    """Return the model as what JSON can hold: parameters of laws, nobody's features."""
    return {
        "fits": {group: [_pack(fit) for fit in pair] for group, pair in model.fits.items()},
        "problems": dict(model.problems),
        "rules": dict(model.rules),
        "denied_features": dict(model.denied_features),
    }


def model_from_data(data: Mapping[str, Any]) -> MixtureModel:
    """Build from what :func:`model_to_data` gave."""
    fits = {group: (_unpack(zero), _unpack(one)) for group, (zero, one) in data["fits"].items()}
    return MixtureModel(fits, data["problems"], data["rules"], data["denied_features"])


def _pack(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        own = {f.name: _pack(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"is": type(value).__name__, **own}
    if isinstance(value, np.ndarray):
        return {"is": "array", "values": value.tolist()}
    if isinstance(value, tuple):
        return {"is": "tuple", "values": [_pack(v) for v in value]}
    if isinstance(value, float) and not math.isfinite(value):
        return {"is": "float", "value": str(value)}
    return value.item() if isinstance(value, np.generic) else value


def _unpack(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    kind = data["is"]
    if kind == "array":
        return np.array(data["values"], dtype=np.float64)
    if kind == "tuple":
        return tuple(_unpack(v) for v in data["values"])
    if kind == "float":
        return float(data["value"])
    if kind not in CLASSES:
        raise BadData(f"the first event holds an unknown kind of law, {kind!r}")
    return CLASSES[kind](**{name: _unpack(v) for name, v in data.items() if name != "is"})
