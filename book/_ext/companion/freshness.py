"""No page shows a number that its helpers would not give today.

Before anything is read, stale chapters are run and the cache is brought in
line; a page whose execution changed is read again although its source did
not.
"""

from __future__ import annotations

import os
from pathlib import Path

from sphinx.util import logging

from tools import execution

log = logging.getLogger(__name__)


def refresh(app, config=None):
    root = Path(app.srcdir)
    # hand the cells the same limits and threads as every other runner
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    stale = execution.sync_cache(root)
    for failure in execution.run_stale(stale, root):
        log.warning("%s", failure, type="execution")
    execution.sync_cache(root)


def changed_pages(app, env, added, changed, removed):
    """Pages to read again because what they show was run again."""
    root = Path(app.srcdir)
    known = getattr(env, "companion_digests", {})
    now = {}
    for notebook in execution.notebooks(root / "book"):
        record = execution.read_record(notebook, root)
        page = notebook.relative_to(root).with_suffix("").as_posix()
        now[page] = record.digest if record else ""
    env.companion_digests = now
    outdated = {p for p in now if now[p] != known.get(p)}
    outdated |= set(getattr(env, "companion_derived", set()))
    return sorted(outdated & env.found_docs)


def mark_derived(env) -> None:
    """Remember that the page being read is made from executions."""
    if not hasattr(env, "companion_derived"):
        env.companion_derived = set()
    env.companion_derived.add(env.docname)


def merge(app, env, docnames, other):
    mine = getattr(env, "companion_derived", set())
    env.companion_derived = mine | getattr(other, "companion_derived", set())


def setup(app):
    app.connect("builder-inited", refresh)
    app.connect("env-get-outdated", changed_pages)
    app.connect("env-merge-info", merge)
