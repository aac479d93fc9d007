"""The mathematical ground: tolerances, activations, linear algebra,
statistics, random streams and data.

Imports nothing from the rest of ``helpers``.
"""
