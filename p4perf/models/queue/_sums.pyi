import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]

def powers(base: _Floats, out: _Floats, length: int, negligible: float, /) -> int: ...
def mixture(rows: _Floats, width: int, base: _Floats, out: _Floats, scratch: _Floats, /) -> int: ...
def admit(base: _Floats, accepted: _Floats, refused: _Floats, rows: int, /) -> int: ...
def smear(rows: _Floats, width: int, base: _Floats, out: _Floats, /) -> int: ...
def cumulate(
    refused: _Floats,
    steps: _Floats,
    span: int,
    row: _Floats,
    rooms: _Integers,
    weights: _Floats,
    cells: _Integers,
    shifts: _Integers,
    out: _Floats,
    length: int,
    /,
) -> int: ...
def cross(rest: _Floats, width: int, tolerance: float, columns: _Floats, crossed: _Floats, /) -> int: ...
def bands(
    running: _Floats,
    width: int,
    which: _Integers,
    first: _Integers,
    cells: _Integers,
    bounds: _Integers,
    down: int,
    span: int,
    out: _Floats,
    offset: int,
    stride: int,
    /,
) -> int: ...
