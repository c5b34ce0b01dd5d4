"""The experiments of the paper, reproduced: ``python -m paper``."""

from paper.experiments import EXPERIMENTS, Edition, run_paper
from paper.settings import Settings

__all__ = ["EXPERIMENTS", "Edition", "Settings", "run_paper"]
