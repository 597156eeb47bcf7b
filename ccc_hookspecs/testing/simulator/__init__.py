"""A stand-in for `claude` that behaves like the real one where a host or a plugin can tell.

Run it as `python -m ccc_hookspecs.testing.simulator ARGS...`, or let `install(directory)` write an executable `claude`.
It remembers what it loaded at its start and never reads the transcript again; its answers recite what it remembers.
`ccc_hookspecs.testing.simulator.model` lists the texts that make it slow, run tools, ask, crash and so on.
"""

from __future__ import annotations

from ccc_hookspecs.testing.simulator.install import install
from ccc_hookspecs.testing.simulator.releases import MEASURED, NEWEST

__all__ = ["MEASURED", "NEWEST", "install"]
