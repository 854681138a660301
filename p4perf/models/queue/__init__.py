"""Queue models: latency and loss at a load from what a packet costs. Needs numpy and scipy only.

Times are whole numbers of steps of a lattice whose step is chosen; results are in microseconds.

>>> from p4perf.models.queue import ModeratedQueue, distributions
>>> arrivals, service = distributions.deterministic(30), distributions.deterministic(7)
>>> queue = ModeratedQueue(arrivals, service, moderation=100, overhead=4, limit=5200)
>>> round(queue.solve().mean_us, 6)
76.5
"""

from p4perf.models.queue import distributions as distributions
from p4perf.models.queue.distributions import Lattice as Lattice
from p4perf.models.queue.distributions import QueueResult as QueueResult
from p4perf.models.queue.distributions import convolve as convolve
from p4perf.models.queue.moderated import ModeratedQueue as ModeratedQueue
from p4perf.models.queue.poll import Bernoulli as Bernoulli
from p4perf.models.queue.poll import Poisson as Poisson
from p4perf.models.queue.poll import PollQueue as PollQueue
