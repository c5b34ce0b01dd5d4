"""Simulation: any audit in any world, many times over."""

from equipoise.simulation.engine import simulate
from equipoise.simulation.result import Simulation, Summary
from equipoise.simulation.runner import Delay, run

__all__ = ["Delay", "Simulation", "Summary", "run", "simulate"]
