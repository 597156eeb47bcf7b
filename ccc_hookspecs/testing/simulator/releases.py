"""What each release of Claude Code writes: one table of features by the first release that was seen to have them.

Measured on 2.0.42, 2.1.6, 2.1.61, 2.1.119, 2.1.168, 2.1.216, 2.1.275 and 2.1.332; a release between two of these
behaves like the older one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

BranchRule = Literal["latest_timestamp", "last_record", "last_prompt"]

MEASURED = ("2.0.42", "2.1.6", "2.1.61", "2.1.119", "2.1.168", "2.1.216", "2.1.275", "2.1.332")
NEWEST = MEASURED[-1]

SINCE: dict[str, tuple[int, int, int]] = {
    # the transcript
    "enqueue": (0, 0, 0),
    "attachments": (2, 1, 119),
    "entrypoint": (2, 1, 119),
    "permission_mode_field": (2, 1, 168),
    "parallel_results": (2, 1, 6),
    "source_assistant": (2, 1, 61),
    "prompt_id": (2, 1, 119),
    "early_prompt": (2, 1, 119),
    "caveat_tag": (2, 1, 6),
    "agent_tool": (2, 1, 119),
    "last_prompt": (2, 1, 119),
    "permission_mode_record": (2, 1, 119),
    "system_local_command": (2, 1, 119),
    "origin": (2, 1, 119),
    "prompt_source": (2, 1, 168),
    "prompt_source_system": (2, 1, 275),
    "last_prompt_leaf": (2, 1, 168),
    "mode_record": (2, 1, 168),
    "turn_duration": (2, 1, 168),
    "echoes_exit": (2, 1, 6),
    "origin_human": (2, 1, 216),
    "cost_state": (2, 1, 275),
    "session_id_too": (2, 1, 216),
    "compact_prompt": (2, 1, 216),
    "headless_cost_state": (2, 1, 332),
    "removal_reason": (2, 1, 275),
    "removal_names_command": (2, 1, 332),
    "merged_send_uuids": (2, 1, 332),
    "atis_latch": (2, 1, 275),
    "turn_origin": (2, 1, 332),
    "task_status": (2, 1, 216),
    "progress": (2, 1, 61),
    "summary": (0, 0, 0),
    "exit_snapshot": (0, 0, 0),
    "tools_used": (2, 1, 332),
    "loads_last_prompt": (2, 1, 216),
    "synthetic_is_meta": (2, 1, 216),
    "marks_synthetic": (2, 1, 275),
    "textless_keeps_prompt": (2, 1, 275),
    "marks_fed": (2, 1, 332),
    "subagents_dir": (2, 1, 6),
    # the branch that --resume reads
    "branch_last_record": (2, 1, 119),
    "branch_last_prompt": (2, 1, 168),
    "mends_broken_chain": (2, 1, 119),
    "preserved_segment": (2, 1, 119),
    "mends_by_dropped_parents": (2, 1, 168),
    # stdout
    "stop_reason_later": (2, 1, 61),
    "task_events": (2, 1, 61),
    "task_events_bash": (2, 1, 119),
    "state_events": (2, 1, 119),
    "terminal_reason": (2, 1, 119),
    "task_updated": (2, 1, 119),
    "thinking_tokens": (2, 1, 168),
    "lifecycle": (2, 1, 216),
    "tells_repeated": (2, 1, 216),
    "idle_beside_background": (2, 1, 216),
    "action_before_question": (2, 1, 216),
    "background_tasks_changed": (2, 1, 216),
    "tasks_changed_first": (2, 1, 216),
    "conversation_reset": (2, 1, 216),
    "reset_timestamp": (2, 1, 332),
    "result_user_message": (2, 1, 216),
    "user_timestamp": (2, 1, 119),
    "assistant_timestamp": (2, 1, 216),
    "user_message": (2, 1, 275),
    "interrupt_is_error": (2, 1, 119),
    "api_error_reason": (2, 1, 216),
    "result_origin": (2, 1, 168),
    "local_num_turns": (2, 1, 168),
    "is_backgrounded": (2, 1, 275),
    "agent_in_background": (2, 1, 216),
    "init_user_messages": (2, 1, 332),
    "subagents_end_late": (2, 1, 332),
    "clear_says_more": (2, 1, 332),
    # processes and their records
    "registry": (2, 1, 119),
    "native_program": (2, 1, 119),
    "headless_status": (2, 1, 275),
    # behaviour
    "skips_unknown_lines": (2, 1, 61),
    "takes_history": (2, 1, 119),
    "unknown_command_is_told": (2, 1, 61),
    "unknown_command_is_local": (2, 1, 168),
    "unknown_command_is_text": (2, 1, 275),
    "export_conversation": (2, 1, 332),
    "well_formed_requests": (2, 1, 216),
    "clear_moves_session": (2, 1, 119),
    "joins_before_answer": (2, 1, 61),
    "partial_answer": (2, 1, 119),
    "hook_events": (2, 1, 119),
    "notes_background": (2, 1, 6),
    "reports_background": (2, 1, 61),
    "kills_background_at_exit": (2, 1, 168),
    "merges_queued_inputs": (2, 1, 119),
    "synthetic_after_open_turn": (2, 1, 6),
    "synthetic_question": (2, 1, 275),
}

_EVER = (99, 0, 0)

GAPS: dict[str, tuple[tuple[int, int, int], tuple[int, int, int]]] = {
    "enqueue": ((2, 1, 6), (2, 1, 61)),
    "compact_prompt": ((2, 1, 332), _EVER),
    "synthetic_question": ((2, 1, 332), _EVER),
    "summary": ((2, 1, 61), _EVER),
    "exit_snapshot": ((2, 1, 119), (2, 1, 275)),
    "echoes_exit": ((2, 1, 61), _EVER),
    "progress": ((2, 1, 119), _EVER),
    "tasks_changed_first": ((2, 1, 332), _EVER),
}
"""Features that were missing again from the first release named until before the second."""


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Claude Code. `has(feature)` answers for each name in `SINCE`; an unknown name is a KeyError."""

    name: str
    number: tuple[int, int, int]

    def has(self, feature: str) -> bool:
        lost, back = GAPS.get(feature, (_EVER, _EVER))
        return self.number >= SINCE[feature] and not lost <= self.number < back

    @property
    def branch_rule(self) -> BranchRule:
        if self.has("branch_last_prompt"):
            return "last_prompt"
        return "last_record" if self.has("branch_last_record") else "latest_timestamp"

    @property
    def model(self) -> str:
        """The model that this release asks for by default."""
        for since, model in _MODELS:
            if self.number >= since:
                return model
        return _MODELS[-1][1]


_MODELS = (
    ((2, 1, 332), "claude-opus-5-5"),
    ((2, 1, 275), "claude-opus-5"),
    ((2, 1, 168), "claude-opus-4-8"),
    ((2, 1, 61), "claude-sonnet-4-6"),
    ((0, 0, 0), "claude-sonnet-4-5-20250929"),
)


def parse(name: str) -> Release:
    """The release of this name, such as `2.1.332`. Raises ValueError for anything that is not three numbers."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", name):
        raise ValueError(f"{name!r} is not a release of Claude Code, expected three numbers such as {NEWEST}")
    major, minor, patch = (int(part) for part in name.split("."))
    return Release(name=name, number=(major, minor, patch))
