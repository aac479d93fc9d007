"""Every tolerance of the helpers, with the reason for its size.

No other module of ``helpers`` holds a bare power of ten. The unit roundoff of
float64 is about ``2.2e-16``; a chain of ``n`` well-conditioned operations
loses a few digits more, and the constants below say how many were granted.
"""

ROUNDING = 1e-12
"""Identities that hold in exact arithmetic, after a few hundred float64
operations on numbers of order one."""

RANK_RELATIVE = 1e-10
"""Singular values below this fraction of the largest count as zero. Data are
given to about 16 digits and products of two factors keep about 13; the gap to
1e-10 leaves room for sums over a few thousand samples."""

SYMMETRY = 1e-10
"""Largest relative asymmetry that a matrix called symmetric may have."""

SETTLE_EXACT = 1e-9
"""Default tolerance of a ledger entry that compares two exact quantities."""

FINGERPRINT_DIGITS = 8
"""Significant digits of a figure's fingerprint. Two more than are compared,
so that a value next to a rounding boundary does not flip the comparison."""

FINGERPRINT_ZERO = 1e-9
"""Plotted values below this fraction of the artist's largest are drawn at
zero as far as a reader can tell, and are rounding noise as often as not."""

PRINTED_ZERO = 1e-8
"""A measured number below this is printed as "below": its digits would be
rounding residuals, which differ from machine to machine."""

ORTHONORMAL = 1e-8
"""Largest entry of ``U.T @ U - I`` for which the columns of ``U`` still count
as orthonormal. Eigensolvers deliver 1e-13; a basis that was rounded to single
precision (1e-7) is refused."""

KERNEL_RELATIVE = 1e-10
"""Laplacian eigenvalues below this fraction of the bound on the largest one
(twice the largest degree, or 2) are called zero. The number of zeros must
agree with the number of connected components, which is counted exactly."""

SHIFT_RELATIVE = 1e-4
"""Size of the negative shift of the shift-invert eigensolver, relative to the
mean diagonal of the Laplacian. Far above rounding, so that the factorised
matrix is safely positive definite, and far below the eigenvalues that matter,
so that the wanted end of the spectrum stays well separated."""

GAP_WARNING = 1.05
"""Ratio of neighbouring eigenvalues below which a low-pass basis is flagged
as poorly determined: a change of a few per cent in the weights may rotate
its last vectors into the next ones."""

COSINE_SLACK = 1e-9
"""How far beyond one the absolute value of a cosine may lie and still be
taken for rounding: a quotient of an inner product and two norms over vectors
of a few thousand entries stays far below it, a wrong number does not."""

QUADRATURE_TAIL = 1e-17
"""What a quadrature rule may leave out: the Gaussian mass beyond the last
node and the aliasing error of the step, both relative to one, so that the
rule is as good as float64."""

NEWTON_GRADIENT = 1e-11
"""Largest entry of the gradient at which Newton's method stops. Gradients of
the population loss are sums of some dozens of terms of order ten."""

CRITICAL_GRADIENT = 1e-9
"""Largest entry of the gradient at which a point counts as critical: one
hundred times the stopping rule of Newton's method, and a millionth of the
gradients at points that are known not to be critical."""

LARGEST_NORM = 1e30
"""Largest norm of a weight vector that closed forms accept: their fifth
powers of products of two squares stay below float64's 1e308."""

SIGN_TIE = 1e-6
"""Entries of an eigenvector within this fraction of the largest tie for it
when the sign is fixed; the first of them decides. Symmetric graphs give exact
ties, which rounding would otherwise decide differently on each machine."""

COMPLEX_STEP = 1e-30
"""Step of a derivative along the imaginary axis. Nothing is subtracted, so
that it can be far below rounding; its square must vanish beside one."""

FINITE_DIFFERENCE = 1e-5
"""Step of a central difference of an exact gradient: the truncation error,
its square, and the rounding error, 2e-16 over the step, are both near 1e-11
for quantities of order one."""

QUASI_NEWTON_GRADIENT = 1e-8
"""Largest entry of the gradient at which L-BFGS stops. It stalls between 1e-8
and 1e-7 on ill-conditioned losses; Newton's method takes over from there."""

STALLED_DAMPING = 1e12
"""Levenberg-Marquardt damping, relative to the squared gradient, beyond which
no step can lower the gradient and the search has stalled."""

EIGENVALUE_TIE = 1e-9
"""Neighbouring eigenvalues closer than this fraction of the largest count as
one repeated eigenvalue. Exact ties are computed to about 1e-14; at a distance
of 1e-9 rounding turns an eigenvector by at most about 1e-6."""

RELU_FLOW_GRADIENT = 5e-8
"""Largest entry of the gradient at which gradient flow of a ReLU student
counts as at rest: the acceptance rule of Simsek et al. (2023)."""

RELU_FLOW_RELATIVE = 1e-7
"""Relative error of a step of that flow. What the flow conserves then drifts
by about 1e-5 over the hundreds of units of time that it takes."""

RELU_FLOW_ABSOLUTE = 1e-10
"""Absolute error of a step, a few hundredths of the gradient at rest: with a
larger one the integrator's noise hides that the flow has stopped."""

DEAD_PRODUCT = 1e-3
"""A ReLU neuron counts as silent if the product of its outgoing weight and
the norm of its incoming weights is below this. Products of neurons in use are
of order one and those of dying ones fall to zero; none was seen between."""

DEAD_NORM = 1e-5
"""Norm of incoming weights at which a ReLU neuron of the flow counts as
arrived at zero: far below those of neurons in use, and far enough above the
integrator's absolute error for a direction to be left."""

MERGED_COSINE = 0.999
"""Cosine of two ReLU neurons above which they count as one. Neighbours in
the two families of end points have cosines below one half, those that merge
approach one like a power of time."""

SAME_LOSS = 1e-6
"""Two losses that belong to one critical point. A gradient of 5e-8 leaves an
error in the loss far below it; the losses of different end points of the
widths in the book differ by more than 1e-4."""

NEWTON_STEP = 1e-9
"""Relative size of the step after which Newton's method on a few smooth
equations stops: its error is about the square of the step, so that rounding
is all that is left."""

ADAM_DENOMINATOR = 1e-8
"""What Adam adds to the root of the second moment: the value of the paper
that introduced it, and of every library."""

FLOW_REST = 5e-8
"""Largest entry of the gradient at which a gradient flow counts as at rest:
the rule of Simsek et al. (2023). It does not certify a minimum."""

FLOW_RELATIVE = 1e-6
"""Relative error of one step of a gradient flow, the paper's."""

FLOW_ABSOLUTE = 1e-8
"""Absolute error of one step of a gradient flow: weights that matter are 1e-2
and larger, so that the relative rule governs them."""

DEAD_NEURON = 1e-3
"""Product of a neuron's two weights below which it counts as dead."""

SAME_DIRECTION = 0.98
"""Absolute cosine above which two student neurons do one neuron's work."""

COPY_COSINE = 0.999
"""Absolute cosine with a teacher neuron from which a neuron is its copy."""

NEAR_COPY_COSINE = 0.9
"""Absolute cosine from which a neuron sits near a teacher neuron; the average
of two teacher neurons has 0.71 with each."""

AVERAGE_COSINE = 1e-3
"""How far the cosines of an average with its group may be from equal."""

LOGIT_RIDGE = 1e-4
"""Penalty on the squared slope of a logistic fit, in a neuron's units. Where
the classes overlap the data outweigh it by far; where they do not, the best
slope is infinite and the penalty stops it at a jump within a neuron."""

CONE_SLACK = 1e-9
"""How far, relative to the neuron, a sample may lie on the wrong side of the
cone of a gating pattern. HiGHS keeps constraints to 1e-7; where it is asked
for the largest margin on scaled rows it does better by far."""

PARALLEL_ROWS = 1e-9
"""Sine of the angle below which two samples count as one hyperplane. Equal
samples come out of a singular value decomposition equal to about 1e-15."""

COVERED_RELATIVE = 1e-10
"""Eigenvalues of a gated denominator below this fraction of its trace before
projection belong to its kernel. They are squares: a neuron less than 1e-5 of
which is new is told from a covered one to few digits in quadratic forms."""

CERTIFIED_RELATIVE = 1e-12
"""By how much, relatively, a relaxed bound must exceed the best neuron for
its pattern to be looked into. Bounds carry a rounding error of about 1e-14
through a few thousand updates of running sums."""

GAIN_TIE = 1e-7
"""Gains that differ relatively by less count as equal where one of two neurons
is chosen: a neuron and its mirror image gain the same, and rounding must not
decide which. Computed gains agree to about 1e-9 and better."""

ANGLE_TIE = 1e-10
"""Crossings on a great circle closer than this are one crossing of several
circles, as collinear samples make them. Among n = 2000 random samples the
closest of eight million crossings are about as far apart."""

RATE_FLOOR = 1e-6
"""Where the grid of a decay bound begins, relative to the bound before the
step. The lowest cell reaches from 0 to here, so that no bound falls by more
than a factor of a million in one step; none in the book does."""

FULL_GAIN = 0.999
"""Fraction of the maximal gain from which a search counts as having found it.
At a kink of the gain, where maxima often lie, L-BFGS stops short by up to
about a thousandth; other local maxima of the problems in the book are
farther below."""

SAME_ATOM = 1 - 1e-6
"""Absolute cosine from which two unit neurons offered to one linear programme
count as one: kept both, they would make its basis singular to seven digits
and lower its value by less than a certified interval is wide."""

CENTRED = 0.25
"""Newton decrement at which a point of a central path is taken for centred.
Any value below one leaves both members of the pair feasible; at a quarter
their gap is within a few per cent of that of the exact centre."""

SPARSE_WEIGHT = 1e-9
"""Weights below this fraction of the largest are not counted as part of a
sparse combination. HiGHS keeps its constraints to 1e-7 and puts exact zeros
outside its basis; what is smaller than this inside is degeneracy."""

PENALISED_GAP = 1e-3
"""Relative duality gap at which a penalised fit stops. Norm and error are
computed from the coefficients found and are valid wherever it stops; a
thousandth is below what a plot of them shows."""

LOBPCG_RESIDUAL = 1e-9
"""Residual of an eigenpair, relative to the bound on the largest eigenvalue,
at which LOBPCG counts as converged. Eigenvalues are then good to the square
of this over the gap, and vectors to this over the gap."""

PREACTIVATION_ZERO = 1e-13
"""A pre-activation below this fraction of the sum of the absolute values of
its terms is zero: a few hundred roundings. Waves touch zero at their valleys
to about 1e-16; perturbations of weights by 1e-12 still show."""

SLOPE_TIE = 1e-13
"""Slopes, or entries of affine maps, of neighbouring cells that agree to this
fraction of the terms that they are the sum of are equal. They are carried
through the layers, a few roundings each, never taken as quotients."""

ARGMAX_PEAK = 1e-10
"""Step at which the search for the place of a maximum stops, on [0, 1]. A
maximum is flat, so that its place is known to about 1e-8 at best; two digits
more cost a few evaluations and leave the flatness as the only cause."""

CONIC_DEGREE = 1e-10
"""A coefficient of the resultant of two conics below this fraction of the sum
of the sizes of its terms is zero, and so are the quadratic coefficients of a
conic below this fraction of its largest. What structure cancels comes out at
about 1e-15; what chance cancels to ten digits is rare enough to be counted
out."""

REAL_ROOT = 1e-6
"""Imaginary part, relative to one plus the absolute value, below which a root
of a polynomial with real coefficients counts as real. A simple root is good to
1e-12; a double one splits by the root of rounding, about 1e-8."""

SOLVED_RELATIVE = 1e-10
"""Relative residual at which an iteration for a match stops: two digits
below what counts as a match, and far above rounding."""

MATCHED_RELATIVE = 1e-8
"""Relative residual below which labels count as matched. At critical budget
successes end below 1e-10 and failures above 2e-3, so the value is not
delicate; single precision would close the gap."""

STATIONARY_COSINE = 1e-6
"""Cosine between residual and tangent space below which a nonzero residual
counts as a local minimum of its norm. Smaller values cost steps and change
no outcome on random quadratic systems."""

LARGEST_DAMPING = 1e10
"""Damping beyond which a step no longer moves the weights visibly."""

DAMPING_FLOOR = 1e-12
"""Added to the damping, for problems whose Jacobian vanishes: a ReLU network
with all learned neurons silent."""

RIDGE_RELATIVE = 4e-15
"""Least damping of a normal matrix, in units of its trace: about 16 roundings,
so that elimination does not meet a pivot of zero where weights are
redundant."""

PATH_NEWTON = 1e-8
"""Relative size of the last Newton correction at which a point counts as
being on its path. Newton converges quadratically, so the point is then good
to rounding; a larger value lets paths jump."""

SMALLEST_STEP = 1e-9
"""Step, of a path parameter that runs from 0 to 1, below which the path is
given up: it ends in a singular solution or at a singular point at infinity."""

FINITE_SHARE = 1e-6
"""Homogenising coordinate of a unit vector below which an end lies at
infinity. Solutions with entries of a million are still finite; ends at
infinity come out at 1e-10 or below if they are regular."""

SAME_SOLUTION = 1e-5
"""Relative distance below which two ends are one solution. Regular solutions
are polished to 1e-12; this leaves room for badly conditioned ones."""

NEAR_REAL = 1e-3
"""Imaginary part, relative to one plus the absolute value, below which the end
of a path is offered as a start for real iteration. Generous: what is kept is
decided by where the iteration ends."""

QUASI_NEWTON_FLAT = 1e-14
"""Largest entry of the gradient of a squared relative residual at which BFGS
stops. At a match to 1e-8 the gradient is about that times the norm of the
Jacobian; a value far below leaves the decision to the residual."""

STALLED_RATE = 1e-12
"""Factor by which a searched learning rate may fall before its start counts
as stalled: rounding then hides the decrease that is looked for."""

NEAR_MATCH = 1e-7
"""Displacement from a match, relative to one plus its largest entry, at which
the rate of descent is that of the linearised system: the curvature changes it
by about this fraction of the condition number, and the residual is still far
above rounding."""
