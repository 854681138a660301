import numpy as np
import numpy.typing as npt

def simulate(
    polled: bool,
    arrival: npt.NDArray[np.float64],
    arrival_first: int,
    service: npt.NDArray[np.float64],
    service_first: int,
    moderation: npt.NDArray[np.float64],
    moderation_first: int,
    overhead: npt.NDArray[np.float64],
    overhead_first: int,
    trace: npt.NDArray[np.int64],
    limit: int,
    ring: int,
    burst: int,
    empty_poll: int,
    packets: int,
    warmup: int,
    seed: int,
    histogram: npt.NDArray[np.int64],
    /,
) -> tuple[int, int, int, int, int, float, float, float]: ...
