"""The real CCC in a story's corner: started by its own script, driven by its own HTTP API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.ccc_hookspecs.integrations.real.place import Place
from tests.real.files import json_lines
from tests.real.judge import open_turn
from tests.real.waiting import PATIENCE, wait_until
from tests.real.world import Text, World

PORT = 8090
RETIRE_STALE = [sys.executable, "-m", "ccc_plugins.retire_stale.cli", "run", "--"]


class CenterWorld(World):
    """A world whose host is CCC. `control_plane`: its worker owns the processes, not its dashboard."""

    def __init__(self, root: Path, claude: Path, place: Place, *, plugin: bool, control_plane: bool) -> None:
        super().__init__(root, claude)
        self._checkout = place.checkout
        self._plugin = plugin
        self._center: subprocess.Popen[bytes] | None = None
        self.environ |= {
            "PATH": os.pathsep.join((str(claude.parent), os.environ["PATH"])),
            "PORT": str(PORT),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(place.watchtower or ""), os.environ.get("PYTHONPATH")))),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CCC_PYTHON": sys.executable,
            "CCC_CONTROL_PLANE_ENGINES": "1" if control_plane else "0",
            "CCC_SKIP_WATCHTOWER": "1",
            "CCC_TELEMETRY_DISABLED": "1",
            # After its own restart, CCC's guard against a second instance takes it for one.
            "CCC_EPHEMERAL": "1",
        }
        self.output = self.home / "ccc.log"

    # --- CCC

    def open(self) -> None:
        """Start CCC and wait until it answers."""
        command = [str(self._checkout / "run.sh")]
        with self.output.open("ab") as output:
            self._center = subprocess.Popen(
                [*RETIRE_STALE, *command] if self._plugin else command,
                env=self.environ,
                cwd=self._checkout,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        wait_until(self._answers, "CCC's answer", 2 * PATIENCE)

    def shut(self) -> None:
        """Stop CCC's dashboard. What it spawned lives on, and so does its worker."""
        if self._center is not None:
            self._center.terminate()
            self._center.wait(PATIENCE)

    def restart(self) -> None:
        """Have CCC restart itself and its worker, and wait until it answers again. Without a worker CCC refuses while it has sessions."""
        answer = self.post("/api/restart/all")
        assert answer["ok"], answer
        wait_until(lambda: not self._answers(), "the end of the old CCC")
        wait_until(self._answers, "CCC's answer", 2 * PATIENCE)

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        """What CCC answers."""
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=2 * PATIENCE) as response:
            answer: dict[str, Any] = json.load(response)
        return answer

    def activity(self, verb: str) -> list[str]:
        """The lines of CCC's activity log with this verb."""
        log = self.home / ".claude" / "command-center" / "logs" / "activity.log"
        return [line for line in log.read_text().splitlines() if f"  {verb:<9}" in line] if log.exists() else []

    def _answers(self) -> bool:
        if self._center is None or self._center.poll() is not None:
            raise AssertionError(f"CCC has ended: {self.output.read_text()[-2000:]}")
        health = f"http://127.0.0.1:{PORT}/api/health"
        with suppress(urllib.error.URLError, ConnectionError, TimeoutError), urllib.request.urlopen(health, timeout=5) as response:
            return bool(response.status == 200)
        return False

    # --- the session

    def start(self, text: str, *options: str) -> dict[str, Any]:
        """Begin the session, and wait for the first answer. CCC takes no options."""
        answer = self.post("/api/sessions/spawn", prompt=text, name="story", cwd=str(self.project), engine="claude")
        log = Path(answer["log"])
        wait_until(lambda: any("session_id" in event for event in json_lines(log)), "the session's id")
        self.session_id = next(event["session_id"] for event in json_lines(log) if "session_id" in event)
        self._gave(text)
        self.wait_answered(text)
        return answer

    def send(self, text: str, *options: str) -> dict[str, Any]:
        """Send a text as the composer does, and wait for its answer."""
        answer = self.offer(text)
        self.wait_answered(text)
        return answer

    def offer(self, text: str, **options: Any) -> dict[str, Any]:
        """Send a text as the composer does."""
        self._gave(text)
        return self.post("/api/inject-input", session_id=self.session_id, text=text, **options)

    def by_pid(self, text: str) -> dict[str, Any]:
        """Send a text to the session's process by its pid."""
        self._gave(text)
        return self.post(f"/api/sessions/spawned/{self.head()}/inject", text=text)

    def question(self, text: str) -> dict[str, Any]:
        """Ask and wait for the answer in one call."""
        self._gave(text)
        return self.post("/api/ask", session_id=self.session_id, text=text, timeout_ms=int(PATIENCE * 1000))

    def wait_answered(self, text: str) -> None:
        """Wait until the answer is on the disk."""
        wait_until(lambda: self.transcript().answered(text), f"the answer to {text!r} in the transcript", 2 * PATIENCE)

    def head(self) -> int | None:
        """The pid of the session's headless, by CCC's registry of spawns."""
        rows = [row for row in self._registry() if self.session_id in (row.get("session_id"), self._logged(row))]
        return rows[-1]["pid"] if rows else None

    def ended_at_work(self) -> list[str]:
        """The processes that ended in the middle of a turn, by their logs."""
        live = {row["log"] for row in self._registry()}
        ended = [log for log in self.project.glob(".claude/logs/*.log") if str(log) not in live]
        return [f"the process of {log.name} ended in the middle of a turn" for log in ended if open_turn(log) is not None]

    def _registry(self) -> list[dict[str, Any]]:
        registry = self.home / ".claude" / "command-center" / "spawned-pids.json"
        rows: list[dict[str, Any]] = json.loads(registry.read_text()) if registry.exists() else []
        return rows

    def _gave(self, text: str) -> None:
        self.given.append(Text(text, by_ccc=True))

    @staticmethod
    def _logged(row: dict[str, Any]) -> str | None:
        events = json_lines(Path(row["log"]))
        return next((str(event["session_id"]) for event in events if "session_id" in event), None)
