"""The one line for people who start CCC in their own way: `import ccc_hookspecs.integrations.command_center.auto`.

It belongs where each of CCC's processes imports it before CCC's server is complete: a `.pth` file or the `sitecustomize`
of CCC's Python, or a line at the top of a start script of your own. In any other process it does nothing.
"""

from __future__ import annotations

from ccc_hookspecs.integrations.command_center.bootstrap import install

install()
