"""A stand-in for `claude -p` on a FIFO: prints the events that CCC reads, and recites the text blocks it was given.

A text that begins with SLOW is answered once the file named by GO exists. From `/clear` on it serves a new session. History is noted, and
acknowledged as by the real one.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from pathlib import Path


def say(**event: object) -> None:
    print(json.dumps({"session_id": os.environ["SESSION"], **event}), flush=True)


def hear(message: dict[str, object]) -> None:
    say(type="told", message=message)
    if message["type"] == "user":
        say(type="system", subtype="init")
        say(type="result", result="", user_message_uuid=message["uuid"])
    say(type="command_lifecycle", state="completed", command_uuid=message["uuid"])


def main() -> None:
    say(type="system", subtype="init")
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        if message["type"] == "assistant" or message.get("shouldQuery") is False:
            hear(message)
            continue
        blocks = [block["text"] for block in message["message"]["content"]]
        say(type="command_lifecycle", state="started", command_uuid=message["uuid"])
        while blocks[-1].startswith("SLOW") and not Path(os.environ["GO"]).exists():
            time.sleep(0.01)
        if blocks == ["/clear"]:
            say(type="conversation_reset")
            os.environ["SESSION"] = str(uuid.uuid4())
        say(type="assistant", message={"content": [{"type": "text", "text": json.dumps(blocks)}]})
        say(type="result", result=json.dumps(blocks), user_message_uuid=message["uuid"])
        say(type="command_lifecycle", state="completed", command_uuid=message["uuid"])


if __name__ == "__main__":
    main()
