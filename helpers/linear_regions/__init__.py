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
pictures
    Diagrams of networks.
"""
