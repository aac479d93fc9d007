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
layers
    ReLU layers on a fixed sample, plain and with skips.
partitions
    Which samples a layer can still tell apart, and the ceiling that follows.
constructions
    Layers that keep coverage by construction.
neurons
    One neuron: gates, gain, relaxed bounds.
gating_patterns
    Which sets of samples one neuron can be on for: count, list, group.
local_search
    Searches for a neuron of large gain that certify nothing.
active_bounds
    What the set of samples that a neuron is on for allows it to catch.
exact_search
    The neuron of maximal gain with a certificate; an independent check.
exact_search_compiled
    Its kernels, compiled where numba is installed.
exact_faces
    The same maximum face by face, for ranks up to four.
exact_tree
    The same maximum by branch and bound, for teaching.
cone_faces
    The same maximum on one small cone, a transcription of the face theorem.
plane_search
    Exact search in random three-dimensional spaces, for larger ranks.
gain_problems
    Problems on which neuron searches are compared with the exact maximum.
climbs
    Where climbs of the gain end.
neuron_sphere
    Maps of the sphere of neurons.
greedy
    Layers of neurons chosen one by one, each for its gain.
rates
    How fast a greedy layer must close the gap: the bounds.
greedy_experiments
    Greedy layers on the sample sets, and floors that no constant beats.
census
    Several graphs on the same samples, summed up; which nodes catch a
    frequency.
sample_sets
    The five sample sets of this part, each with a target.
sparse_neurons
    Random neurons that are on for a given fraction of the samples.
leverage
    Leverage scores where an eigenbasis is too dear.
neuron_dictionary
    Unit neurons by the thousand: staircases, and pricing against a target.
variation_norms
    What a function costs in neurons, with certificates.
block_norms
    What all low frequencies cost together.
column_generation
    How both are found.
norm_curves
    What a little error saves.
norm_experiments
    Samples for variation norms, and their stored run.
clusters
    Clusters that hyperplanes cut off: two neurons make an indicator.
training
    Plain ReLU networks trained by Adam; needs torch.
training_experiments
    What training covers, and greedy against random neurons: stored runs.
graph_choice
    The objective for choosing a graph.
"""
