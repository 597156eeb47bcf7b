"""The hooks inside the real CCC (Claude Command Center), whose files are not changed.

    retire-stale run -- ./run.sh                                   # starts CCC with the plugins attached
    import ccc_hookspecs.integrations.command_center.auto          # the same, for a start script of your own
    attachment = attach(server)                                    # by hand, to a server module

Read in CCC 5.25.2; what it relies on is listed in `names`, and checked at each start.
"""

from __future__ import annotations

from ccc_hookspecs.integrations.command_center.attach import AttachError, Attachment, attach

__all__ = ["AttachError", "Attachment", "attach"]
