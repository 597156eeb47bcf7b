"""What another writer may do on a session, each with what must become of the headless that does not know of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.real.requests.stage import COMMAND, Stage
from tests.real.waiting import wait_until

RELEASES = ("2.1.119", "2.1.332", "2.1.216", "2.1.168", "2.1.275")
"""Those that take history; what takes longest first."""

NORMALISED = {"2.1.275": ("token budget",)}
"""What cannot be the same with a release, by its name in `comparison`."""

TWO_NOTES = (
    "the process notes by itself where it keeps the image that it is given, and is given the other process's note besides, as a prompt"
)
NO_PREFACE = "a notice about a subagent's end is given as a person's text, so that it lacks the preface that it is no input of the person's"
LOCAL_UNTOLD = "a local command and its output, in front of the other process's turn, are not given"
HOOKS_UNTOLD = "what hooks said to the model in the other process's turn stands in attachments, which are not given"

Became = Literal["healed", "retired", "neither"]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A PNG of one pixel, in base64."""

HOOKS = {
    "hooks": {
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo said by a hook at the prompt"}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": "echo said by a hook behind a tool >&2; exit 2"}]}],
    }
}
"""Settings of a writer whose hooks say something to the model."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`write`: the part of the other writer.

    `heal`: the plugin's setting. `became`: what must become of the headless; `neither`: no plugin is there, and the requests must differ.
    `compared`: whether with what a fresh process sends on the transcript as it stood before the text, or as it stands behind the healing.
    `releases`: those with which it is played. `normalised`: what cannot be the same, by its name in `comparison`. `faults`: the releases on
    which the requests are known to differ, and why.
    """

    name: str
    write: Callable[[Stage], None]
    heal: Literal["always", "held"] = "always"
    became: Became = "healed"
    compared: Literal["before", "behind"] = "before"
    releases: tuple[str, ...] = RELEASES
    normalised: tuple[str, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)


def plain(stage: Stage) -> None:
    stage.one_shot("typed elsewhere")


def terminal(stage: Stage) -> None:
    stage.world.takes_a_turn("typed in a terminal")


def tools(stage: Stage) -> None:
    """A tool, and in the next turn two in one answer."""
    with stage.writer() as writer:
        for text in ("RUN: echo hi", "TWO: commands"):
            stage.turn(writer, text)


def thinking(stage: Stage) -> None:
    stage.one_shot("THINK about it")


def picture_read(stage: Stage) -> None:
    """An image as the result of a tool."""
    picture = stage.world.project / "pixel.png"
    picture.write_bytes(base64.b64decode(PIXEL))
    stage.one_shot(f"CUSTOM: Read {json.dumps({'file_path': str(picture)})}")


def picture_shown(stage: Stage) -> None:
    """An image in a prompt."""
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    stage.one_shot([{"type": "image", "source": source}, {"type": "text", "text": "what is this"}])


def mid_turn(stage: Stage) -> None:
    """A second text while a tool of the first one's turn runs."""
    running, gate = stage.world.home / "running", stage.world.home / "gate"
    with stage.writer() as writer:
        writer.say(f"RUN: touch {running}; until [ -e {gate} ]; do sleep 0.05; done")
        wait_until(running.exists, "the tool")
        before = stage.enqueued()
        writer.say("typed meanwhile")
        wait_until(lambda: stage.enqueued() > before, "the second text in the queue")
        gate.touch()


def hooks(stage: Stage) -> None:
    """A hook that adds to the prompt, and one that complains about a tool's result."""
    stage.one_shot("RUN: echo hi", "--settings", json.dumps(HOOKS))


def custom_command(stage: Stage) -> None:
    """A slash command of the person's own, whose text is given to the model."""
    stage.one_shot(f"/{COMMAND} you")


def mention(stage: Stage) -> None:
    """A file that is named in a text, and stays as it is."""
    (stage.world.project / "notes.txt").write_text("a line\nanother\n")
    stage.one_shot("look at @notes.txt")


def subagent(stage: Stage) -> None:
    stage.one_shot("TASK: look around")


def refused(stage: Stage) -> None:
    """A request that the API refuses, and a turn behind it."""
    with stage.writer() as writer:
        for text in ("FAIL400", "typed behind the failure"):
            stage.turn(writer, text)


def local_command(stage: Stage) -> None:
    """A command that asks no model, and a turn behind it."""
    with stage.writer() as writer:
        for text in ("/cost", "typed behind the command"):
            stage.turn(writer, text)


def forked(stage: Stage) -> None:
    """Both take a turn at once, so the transcript has two branches, of which a fresh process reads one."""
    text = "SLOW 120 by the host"
    stage.host.send(stage.session_id, text)
    stage.request(text)
    stage.one_shot("typed elsewhere")
    stage.world.release()
    wait_until(lambda: stage.world.transcript().answered(text), "the late answer")
    wait_until(stage.delivered, "the delivery of what it answers")


def compaction(stage: Stage) -> None:
    """A fresh process reads the summary, which is shorter than what the headless would have."""
    with stage.writer() as writer:
        for text in ("typed elsewhere", "/compact", "typed behind the compaction"):
            stage.turn(writer, text)


def rewound(stage: Stage) -> None:
    """A person goes back behind a turn that the headless knows, and goes on without it. Older releases do not note that."""
    stage.say("second by the host")
    window = stage.world.terminal()
    window.rewind(1, "Restore conversation")
    stage.world.ask(window, "typed instead")
    window.leave()


KINDS = {
    kind.name: kind
    for kind in (
        Kind("plain", plain),
        Kind("plain-", plain, became="neither"),
        Kind("terminal", terminal, normalised=("announcements", "no response requested")),
        Kind("tools", tools),
        Kind("thinking", thinking),
        Kind("picture-read", picture_read),
        Kind("picture-shown", picture_shown, faults=dict.fromkeys(("2.1.275", "2.1.332"), TWO_NOTES)),
        Kind("mid-turn", mid_turn, normalised=("mid-turn preface",)),
        Kind("hooks", hooks, faults=dict.fromkeys(RELEASES, HOOKS_UNTOLD)),
        Kind("custom-command", custom_command),
        Kind("mention", mention),
        Kind("subagent", subagent, faults=dict.fromkeys(("2.1.216", "2.1.275", "2.1.332"), NO_PREFACE)),
        Kind("refused", refused),
        Kind("local-command", local_command, faults=dict.fromkeys(RELEASES, LOCAL_UNTOLD)),
        Kind("forked", forked, compared="behind"),
        Kind("compaction", compaction, heal="held", became="retired"),
        Kind("rewound", rewound, became="retired", releases=("2.1.332",), normalised=("announcements", "no response requested")),
    )
}
