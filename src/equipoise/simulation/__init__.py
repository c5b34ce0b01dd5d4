"""Simulation: any audit in any world, many times over."""

from equipoise.simulation.drive import Delay, run
from equipoise.simulation.runs import Simulation, Summary
from equipoise.simulation.simulate_audit import simulate
from equipoise.simulation.sweeps import Sweep, sweep

__all__ = ["Delay", "Simulation", "Summary", "Sweep", "run", "simulate", "sweep"]
