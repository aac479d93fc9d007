"""Allocation: which weights of a network may learn.

Kernels for Part I of the book, on the subject of Schlisselberg and Darshan
(ICLR 2025), in our reconstruction. A *student* shares the architecture of a
*teacher*; a few of its weights are chosen, the others stay random. A *match*
is a choice that reproduces the teacher's labels on all examples.

Arrays carry problems on the leading axis, examples on the last.

Modules
-------
networks
    Linear recurrent, linear feedforward and shallow ReLU networks.
allocations
    Sets of learnable entries, and laws to draw them from.
jacobians
    What moving a learnable entry does to the labels.
ranks
    Generic ranks, in floating point and modulo a prime; caps on them.
linear_systems
    Decoder, encoder and one layer: affine systems, counts that they need.
conics
    Two learnable recurrent weights: where two conics meet, exactly.
pictures
    How an allocation and a match probability are drawn.
levenberg
    Levenberg-Marquardt with many starts, batched and compiled.
levenberg_compiled
    Its loops.
quadrics
    Recurrent allocations as polynomial systems.
homotopy
    All complex solutions of small quadratic systems.
lift
    The quadratic lift, and matches that it makes linear.
matching
    Match probabilities, by the cheapest exact method.
experiments
    Points of recurrent match curves, for stored sweeps.
descent
    Gradient descent in closed form and in batches; all real solutions.
lifted
    Levenberg-Marquardt on the lifted system.
descent_experiments
    Points of the optimiser chapter.
digits
    Real labels: training, and what activations can reach.
factors
    Several learned layers, or encoder, recurrent matrix and decoder at once.
mixed
    Encoder, recurrent matrix and decoder learned together.
factor_experiments
    Points of curves with several learned factors, for stored sweeps.
adapters
    Low-rank adapters of a layer and of a recurrent matrix.
cones
    What columns of a readout reach with the values of an activation.
patterns
    Activation patterns of learned neurons, and the matches in them.
shallow
    Match probabilities of shallow networks.
shallow_experiments
    Points of their curves.
"""
