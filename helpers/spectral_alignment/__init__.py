"""Spectral alignment: sample graphs, low frequencies, and what ReLU layers
capture of them.

Samples are rows here, ``X`` has shape ``(n, d)``; the paper stores them as
columns, so that its ``X`` is our ``X.T`` and its ``H_0`` is our ``X``.
"""
