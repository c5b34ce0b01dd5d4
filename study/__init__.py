"""Long statistical studies, one file each: ``python -m study``."""
