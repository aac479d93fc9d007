"""Copy or average: narrow networks that imitate wide ones.

Kernels for Part III of the book, after Simsek, Bendjeddou, Gerstner and Brea
(NeurIPS 2023). A *student* with ``n`` neurons imitates a *teacher* with
``k``, on standard Gaussian inputs, in the mean square.

Modules
-------
quadrature
    Rules for expectations over one and two Gaussian variables.
interactions
    The interaction function of two neurons, and its derivatives.
assumption
    The two conditions on an activation under which one neuron averages.
networks
    Student and teacher, and where their neurons point.
population
    The loss, its gradient and its Hessian, batched over students.
aligned
    The loss of one neuron along the average, as a function of its norm.
one_neuron
    The best single neuron, in closed form and by search.
order_parameters
    Lengths and angles: the loss in them, and which of them are a network.
search
    Critical points from random starts.
configurations
    Students glued together from one-neuron solutions.
degrees
    Networks degree by degree, and a floor that no student passes.
stability
    The Hessian at copy-average points, in blocks.
perturbed_family
    Students whose neurons all lean alike: their loss and its equations.
perturbed_copy
    The perturbed copies among them, followed along a real width.
perturbed_spectrum
    The Hessian at perturbed copies, in blocks.
objective
    Loss, gradient and Hessian as functions of one packed vector.
compiled
    The kernels behind it, for erf.
initial
    Laws of random starts.
flow
    Gradient flow until it rests.
classify
    What kind of solution a student is.
pictures
    A student of three teacher neurons, drawn and animated.
endings
    Split copies: saddles of third order.
phase_diagram
    Counts, fits and thresholds of many runs.
experiments
    One run of the phase diagram, as a task of a sweep.
unequal_teachers
    Teachers whose neurons differ: whom to copy, and what a change does.
empirical
    The loss of a finite sample, its minimiser, and what the sample costs.
matches
    Students that reproduce examples exactly: equations, starts and ends.
inputs
    Input laws that are not Gaussian, as samples and as rules.
training
    SGD and Adam beside gradient flow.
symmetric
    Students that treat alike what is copied, and what is averaged.
rectified
    ReLU students: what their flow conserves, and where it ends.
smooth_flow
    One gradient flow with an activation that has to be integrated.
distillation
    Warm starts made from a trained teacher.
"""
