"""Past decisions: reading them from anywhere, as the few counts an audit needs."""

from equipoise.history.history import History
from equipoise.history.past import Past

__all__ = ["History", "Past"]
