"""Helpers of the book on what constrained neural networks can express.

``helpers.core`` is the mathematical ground, ``helpers.book`` what a chapter
needs to be a chapter, and each part of the book has a package of its own.
Nothing here imports torch or numba unless a module says so.
"""

__version__ = "0.1.0"
