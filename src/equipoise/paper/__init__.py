"""The experiments of the paper, reproduced: ``equipoise paper``."""

from equipoise.paper.experiments import EXPERIMENTS, Edition, run_paper
from equipoise.paper.settings import Settings

__all__ = ["EXPERIMENTS", "Edition", "Settings", "run_paper"]
