"""Spectral alignment: sample graphs, low frequencies, and what ReLU layers
capture of them.

Samples are rows here, ``X`` has shape ``(n, d)``; the paper stores them as
columns, so that its ``X`` is our ``X.T`` and its ``H_0`` is our ``X``.

Modules
-------
graphs
    Graphs on samples, and their Laplacians.
spectra
    Frequencies of a graph, energy, and the low-pass split.
coverage
    How much of the low frequencies a set of features can represent.
neurons
    One neuron: gates, gain, relaxed bounds, local search, active sets.
exact_search
    The neuron of maximal gain with a certificate; an independent check.
exact_search_compiled
    Its kernels, compiled where numba is installed.
exact_faces
    The same maximum face by face, for ranks up to four.
exact_tree
    The same maximum by branch and bound, for teaching.
"""
