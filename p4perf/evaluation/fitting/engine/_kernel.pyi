from collections.abc import Callable

import numpy as np
import numpy.typing as npt

def run(
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
    templates: npt.NDArray[np.float64],
    runs: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    choosing: bool,
    metric: int,
    kappa: float,
    kappa_rel: float,
    kappa_points: float,
    bulge: float,
    samples_per_parameter: int,
    floor: float,
    robust: bool,
    threads: int,
    progress: Callable[[float], object] | None,
    error: npt.NDArray[np.float64],
    choice: npt.NDArray[np.int64],
    parameters: npt.NDArray[np.float64],
    origins: npt.NDArray[np.float64],
    /,
) -> None: ...
