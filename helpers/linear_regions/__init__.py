"""Linear regions: ReLU networks with exponentially many pieces.

Kernels for Part II of the book, after Milkert, Hyde and Laine (ICML 2025).
Composed *triangles* fold the unit interval; a narrow ReLU network adds the
*waves* that they make, and its *peaks* are what is trained first.

Modules
-------
triangles
    Triangles, waves, scales, the sum of waves and its gradient.
cells
    The pieces of a sum of waves, from its parameters alone.
networks
    ReLU networks that compute such sums exactly.
costs
    Parameters, multiplications and memory of a network.
targets
    The one-dimensional target functions, with derivatives.
limits
    What sums of waves converge to, corner by corner.
representable
    Which functions are limits, and how far the others stay away.
frequencies
    What a fold costs in energy, and which frequencies waves hold.
peak_fits
    Best fits by peaks alone, and by blocks between affine maps.
pictures
    Diagrams of networks.
problems
    Problems beyond one dimension, and what sums over axes miss.
block_training
    Networks of V blocks and their rivals, trained in two stages.
convolution
    A small convolutional network with a hidden layer of blocks.
convexity
    What convexity allows between samples.
regions_1d
    Knots and regions on an interval or a segment, exactly; grids, to compare.
regions_2d, regions_2d_compiled
    All cells in the plane, as a mesh; compiled where numba is installed.
regions_2d_exact
    The same in rational arithmetic, a certificate.
arrangements
    Cells of families of parallel hyperplanes, by formula.
random_networks
    Networks whose regions are counted.
initialisations
    Starting weights of many networks at once.
training
    Peaks, weights and geometric coordinates trained in batches; needs torch.
modules
    Triangle layers as torch modules.
splines
    Linear splines, free-knot and least squares; effective pieces.
summaries
    From errors of many runs to a line of a table.
experiments
    Tasks of the one-dimensional sweeps.
"""
