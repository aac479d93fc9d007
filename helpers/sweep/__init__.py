"""Large experiments: grids, resumable runs, tables with a manifest.

    python -m helpers.sweep run MODULE:FUNCTION STORE --over 'n=[1,2,3]'
    python -m helpers.sweep status STORE
    python -m helpers.sweep export STORE TABLE.parquet
    python -m helpers.sweep rescue DAMAGED NEW

The same from Python: :func:`run_sweep`, :func:`grid`, :func:`spawn_seeds`,
:func:`export` and :func:`rescue`; :func:`load_results` reads a table. Running needs the extra
``sweep``, a cluster ``dask``.
"""

from helpers.sweep.export import export
from helpers.sweep.grid import grid, spawn_seeds
from helpers.sweep.rescue import rescue
from helpers.sweep.results import Results, load_results
from helpers.sweep.runner import SweepFailed, SweepReport, run_sweep
from helpers.sweep.store import Store, StoreError

__all__ = [
    "Results",
    "Store",
    "StoreError",
    "SweepFailed",
    "SweepReport",
    "export",
    "grid",
    "load_results",
    "rescue",
    "run_sweep",
    "spawn_seeds",
]
