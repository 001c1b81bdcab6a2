"""numpy, which takes long to import, from when it is first used, and names of its arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpigraft.core.lazy_exports import deferred

__all__ = ["Bools", "Floats", "Ints", "NDArray", "np"]

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
else:
    np = deferred("numpy")
    Bools = Floats = Ints = NDArray = Any
