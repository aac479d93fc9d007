"""What a chapter needs to be a chapter: figures, results, ledger, scale.

Importing this package applies the book's figure style.

>>> from helpers.book import glue, ledger, pick, show_figure, style
"""

from helpers.book import ledger, style
from helpers.book.figures import show_figure
from helpers.book.interactive import show_applet, show_interactive
from helpers.book.results import glue
from helpers.book.scale import pick, scale

style.apply()

__all__ = [
    "glue",
    "ledger",
    "pick",
    "scale",
    "show_applet",
    "show_figure",
    "show_interactive",
    "style",
]
