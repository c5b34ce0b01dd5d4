"""Simulation: any audit in any world, many times over."""

from equipoise.simulation.result import Simulation, Summary
from equipoise.simulation.runner import Delay, run
from equipoise.simulation.engine import simulate

__all__ = ["Delay", "Simulation", "Summary", "run", "simulate"]
