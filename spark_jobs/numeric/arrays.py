"""The arrays that the kernel computes with, and how they say that there is nothing. Holds names only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

NONE = np.int64(-1)
FAR = np.int64(2**62)
"""An instant before or after everything: a bound that nothing gives."""
NEVER_MS = 253_402_300_800_000
"""The year 10000, ms: no calendar here knows it. No clock is as wrong as that, and what is kept until then is kept."""
CLOCK_TOLERANCE_US = 10_000_000
"""Clocks of hosts differ, and a poll takes a while: instants that are closer than this may be in either order."""
EARLIEST_STAMP_US = 10**15
"""Timestamps before September 2001 are 0, -1, or seconds taken for milliseconds, and never times of records."""
MARKERS = 100
"""Log ends are those of records: a group may have passed so many markers of transactions behind them."""
