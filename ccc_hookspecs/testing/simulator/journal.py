"""The transcript that one process writes: where it is, and one method for each kind of record, by release."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ccc_hookspecs.testing.simulator.lines import Record, joined, line_of, new_id, project_dir, stamp
from ccc_hookspecs.testing.simulator.releases import Release


class Journal:
    """Appends to one session's transcript. `leaf` is the `uuid` that the next record hangs on, from memory and never from the file.

    `prompted`: an input was written. `length`: how many messages this process has read and written. `written`: the ids of the latter.
    """

    def __init__(self, release: Release, config_dir: Path, cwd: Path, session_id: str, *, entrypoint: str, permission_mode: str) -> None:
        self.release = release
        self.config_dir = config_dir
        self.cwd = cwd
        self.session_id = session_id
        self.entrypoint = entrypoint
        self.permission_mode = permission_mode
        self.leaf: str | None = None
        self.prompt_id = new_id()
        self.last_prompt = ""
        self.prompted = False
        self.length = 0
        self.written: set[str] = set()
        self._held: list[Record] | None = None
        self._tools: list[str] = []
        self._stamped_at = 0.0
        self.compacting = False

    @property
    def path(self) -> Path:
        return project_dir(self.config_dir, self.cwd) / f"{self.session_id}.jsonl"

    def hold(self) -> None:
        """Keep every further record that has a `uuid` in memory until `flush`."""
        self._held = [] if self._held is None else self._held

    def flush(self) -> None:
        held, self._held = self._held or [], None
        for record in held:
            self.write(record)

    def write(self, record: Record) -> None:
        """Append one record as it is, in one write."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(fd, line_of(record))
        finally:
            os.close(fd)

    def chain(self, body: Record, *, record_id: str | None = None, parent: str | None = "", at: float | None = None) -> str:
        """Append a record that hangs on `parent` (the leaf when not given) and becomes the leaf; returns its `uuid`."""
        record_id = record_id or new_id()
        record: Record = {"parentUuid": self.leaf if parent == "" else parent, "isSidechain": False, **body}
        record |= {"uuid": record_id, "timestamp": self._stamp(at), "userType": "external"}
        if self.release.has("entrypoint"):
            record["entrypoint"] = self.entrypoint
        if self._names_session_twice(body):
            record["session_id"] = self.session_id
        record |= {"cwd": str(self.cwd), "sessionId": self.session_id, "version": self.release.name, "gitBranch": ""}
        if self._held is None:
            self.write(record)
        else:
            self._held.append(record)
        self.leaf = record_id
        self.length += 1
        self.written.add(record_id)
        return record_id

    def plain(self, kind: str, **fields: Any) -> None:
        """Append a record that has no `uuid` and hangs on nothing."""
        self.write({"type": kind, **fields, "sessionId": self.session_id})

    def _names_session_twice(self, body: Record) -> bool:
        """True for what a terminal writes from an answer or a compaction, from 2.1.216 on."""
        if self.entrypoint != "cli" or not self.release.has("session_id_too"):
            return False
        answered = body["type"] == "assistant" and "isApiErrorMessage" not in body
        return answered or self.compacting or body.get("attachment", {}).get("type") in {"deferred_tools_record", "prompt_snapshot"}

    def _stamp(self, at: float | None) -> str:
        """A stamp later than that of the record before, as slower processes have; up to 2.1.61 stamps choose the branch."""
        if at is None:
            at = self._stamped_at = max(time.time(), self._stamped_at + 0.001)
        return stamp(at)

    # --- the queue ------------------------------------------------------------------------------------------------------

    def queue(self, operation: str, content: Any = None, *, system: bool = False) -> None:
        """`enqueue` or `dequeue`. `system`: nobody typed it, which 2.1.6 notes although it does not note other inputs."""
        if operation == "enqueue" and not (self.release.has("enqueue") or system):
            return
        record: Record = {"type": "queue-operation", "operation": operation, "timestamp": stamp(), "sessionId": self.session_id}
        if content is not None:
            record["content"] = content
        self.write(record)

    def dequeue_mid_turn(self, content: Any, input_id: str, at: float) -> None:
        """A queued input joins the running turn: an attachment, in releases that have these, else only the removal from the queue."""
        removal: Record = {"type": "queue-operation", "operation": "remove", "timestamp": stamp(), "sessionId": self.session_id}
        if self.release.has("removal_reason"):
            removal["reason"] = "absorbed_mid_turn"
        if self.release.has("removal_names_command"):
            removal |= {"content": joined(content), "commandUuid": input_id, "deliveryId": new_id()}
        self.write(removal)
        if self.release.has("attachments"):
            attachment = {"type": "queued_command", "prompt": content, "source_uuid": input_id, "commandMode": "prompt"}
            self.chain({"attachment": attachment, "type": "attachment"}, at=at)

    # --- the conversation -----------------------------------------------------------------------------------------------

    def prompt(self, content: Any, *, record_id: str, source: str = "sdk", origin: Record | None = None, merged: Sequence[str] = ()) -> str:
        """What a person, a host (`sdk`) or Claude Code itself (`system`) said; begins a turn. `merged`: ids of inputs that it swallowed."""
        body = self._prompt(content)
        if origin is not None and self.release.has("origin"):
            body["origin"] = origin
        if self.release.has("prompt_source"):
            body["promptSource"] = source if self.release.has("prompt_source_system") or source != "system" else "sdk"
        body |= self.turn_origin(source)
        if merged:
            body["mergedSendUuids"] = list(merged)
        return self.chain(body, record_id=record_id)

    def fed_input(self, content: Any, *, record_id: str | None, meta: bool) -> str:
        """An input that is history alone. `meta`: nobody typed it."""
        body = self._prompt(content)
        if self.release.has("prompt_source"):
            body["promptSource"] = "sdk"
        if self.release.has("marks_fed"):
            body["queueTranscriptOnly"] = True
        if meta:
            body["isMeta"] = True
        return self.chain(body, record_id=record_id)

    def fed_answer(self, message: Record, record_id: str, parent: str | None) -> str:
        """An answer that a host fed, as it was given, below `parent` (the leaf when None)."""
        body: Record = {"message": message, "type": "assistant"}
        if self.release.has("marks_fed"):
            body["madeBy"] = "input"
        return self.chain(body, record_id=record_id, parent=parent or "")

    def _prompt(self, content: Any) -> Record:
        """What every input has; one without text, such as a tool's result, leaves the last prompt as it is."""
        self.prompted = True
        self.last_prompt = joined(content) or self.last_prompt
        body = self._user(content)
        if self.release.has("permission_mode_field"):
            body["permissionMode"] = self.permission_mode
        return body

    def turn_origin(self, source: str) -> Record:
        """The field that says what began a turn, in releases that write it."""
        if not self.release.has("turn_origin"):
            return {}
        return {"turnOrigin": {"sdk": "sdk", "system": "task_notification"}.get(source, "human")}

    def _user(self, content: Any) -> Record:
        body: Record = {"promptId": self.prompt_id} if self.release.has("prompt_id") else {}
        return body | {"type": "user", "message": {"role": "user", "content": content}}

    def new_prompt(self) -> None:
        """What follows belongs to another prompt."""
        self.prompt_id = new_id()

    def user(self, content: Any, *, meta: bool = False, record_id: str | None = None, at: float | None = None, **fields: Any) -> str:
        """Any other `user` record: the echo of a command, an interruption, a compact summary."""
        body = self._user(content) | fields
        if meta:
            body["isMeta"] = True
        return self.chain(body, record_id=record_id, at=at)

    def tool_result(self, result: Record, tool_use_result: Any, assistant: str) -> str:
        body = self._user([result]) | {"toolUseResult": tool_use_result}
        if self.release.has("source_assistant"):
            body["sourceToolAssistantUUID"] = assistant
        return self.chain(body, parent=assistant if self.release.has("parallel_results") else "")

    def assistant(self, message: Record, *, error: bool | None = None, record_id: str | None = None) -> str:
        """One content block of an answer. `error`: True for a failed request, False for a text that no model wrote."""
        body: Record = {"message": message, "type": "assistant"}
        if error is not None:
            body["isApiErrorMessage"] = error
        return self.chain(body, record_id=record_id)

    def subagent(self, task_id: str, role: str, text: str) -> None:
        """A line in a subagent's own transcript, which carries this session's id and is marked as a side chain."""
        folder = self.path.parent / self.session_id / "subagents" if self.release.has("subagents_dir") else self.path.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        record: Record = {"parentUuid": None, "isSidechain": True, "agentId": task_id, "type": role, "uuid": new_id(), "timestamp": stamp()}
        record |= {"message": {"role": role, "content": [{"type": "text", "text": text}]}, "sessionId": self.session_id}
        with (folder / f"agent-{task_id}.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")

    def attachment(self, kind: str) -> str:
        return self.chain({"attachment": {"type": kind}, "type": "attachment"})

    def progress(self, kind: str) -> None:
        """What a command or a subagent did meanwhile; 2.1.61 alone chains such records, late, and they never appear on stdout."""
        if self.release.has("progress"):
            self.chain({"type": "progress", "data": {"type": kind}, "toolUseID": "progress-0", "parentToolUseID": "toolu_0"})

    def system(self, subtype: str, **fields: Any) -> str:
        return self.chain({"type": "system", "subtype": subtype, **fields})

    # --- trailers -------------------------------------------------------------------------------------------------------

    def last_prompt_trailer(self) -> None:
        """The end of this process's branch, and its last prompt, when there was one."""
        told = {"lastPrompt": self.last_prompt[:200]} if self.last_prompt else {}
        leaf = {"leafUuid": self.leaf} if self.release.has("last_prompt_leaf") else {}
        if told or leaf:
            self.plain("last-prompt", **told, **leaf)

    def tools_used(self, names: Sequence[str]) -> None:
        """The list of tools used so far, when one is new, in releases that keep it."""
        if self.release.has("tools_used") and not set(names) <= set(self._tools):
            self._tools += [name for name in dict.fromkeys(names) if name not in self._tools]
            self.plain("tools-used", tools=list(self._tools))

    def summary(self) -> None:
        """The title of some session; it names a record that may stand in no transcript at all."""
        if self.leaf is not None:
            self.write({"type": "summary", "summary": "A title", "leafUuid": new_id()})

    def snapshot(self, message_id: str) -> None:
        """The record that a terminal writes before each prompt; it has a `messageId` and no `uuid`."""
        inner = {"messageId": message_id, "trackedFileBackups": {}, "timestamp": stamp()}
        self.write({"type": "file-history-snapshot", "messageId": message_id, "snapshot": inner, "isSnapshotUpdate": False})

    def named(self, name: str) -> None:
        """One record by the name it has in the tables of `shapes`: a trailer when it begins with `-`, else an attachment."""
        if not name.startswith("-"):
            self.attachment(name)
        elif name == "-last-prompt":
            self.last_prompt_trailer()
        else:
            stamped = {"timestamp": stamp(), "version": self.release.name} if name in _STAMPED else {}
            self.plain(name[1:], **_TRAILERS.get(name, {}), **stamped)


_STAMPED = {"-api-request-shape", "-api-request"}

_TRAILERS: dict[str, Record] = {
    "-atis-latch": {"atis": ""},
    "-mode": {"mode": "normal"},
    "-permission-mode": {"permissionMode": "default"},
    "-cost-state": {"totalCostUSD": 0.0, "totalDuration": 0, "hasUnknownModelCost": False},
    "-api-request-shape": {"shapeHash": "0" * 64, "shape": {}},
    "-api-request-blob": {"hash": "0" * 64, "message": {"role": "user", "content": []}},
    "-api-request": {"querySource": "sdk", "shapeHash": "0" * 64, "keep": 0, "tail": []},
}
