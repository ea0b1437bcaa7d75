"""A connection to a rig's host: programs, files and devices there, with deadlines and typed errors.

One agent (``agent.py``) per connection does the work on the rig, whether it is this
machine or is reached by ssh.  Whatever ends the connection ends the agent's programs.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from leadline.errors import RigTrouble
from leadline.host import ssh
from leadline.host.agent_bytes import pack, unpack
from leadline.host.programs import missing
from leadline.host.running import Running
from leadline.host.trouble import (
    CommandRefused,
    DeadlinePassed,
    DeviceBusy,
    FileTrouble,
    HostLost,
    ProgramFailed,
    ProgramMissing,
    ProgramTooOld,
    file_trouble,
    last_lines,
    printable,
)
from leadline.host.wire import BOOTSTRAP, Call, Message, Wire

if TYPE_CHECKING:
    from leadline.inventory.rig import HostSpec

__all__ = [
    "CommandRefused",
    "DeadlinePassed",
    "DeviceBusy",
    "FileTrouble",
    "Finished",
    "Host",
    "HostLost",
    "ProgramFailed",
    "ProgramMissing",
    "ProgramTooOld",
    "Running",
    "open_host",
]

CALL_S = 30.0  # a file operation; a sick drive's sysfs may hang
KILL_S = 10.0  # what the agent may need to end a program, and to say so
RETRY_S = 1.0
ATTEMPT_S = 30.0  # a login may hang when the rig goes down in the middle of it
HOPELESS = ("host-key-changed", "host-key-unknown", "configuration")
LOCK_RETRY_S = 0.1

# SPC-4/SAM-5 status bytes; sense keys NO SENSE and RECOVERED ERROR come with good data.
CHECK_CONDITION = 0x02
DRIVER_SENSE = 0x08
GOOD_KEYS = (0x0, 0x1)


@dataclass(frozen=True, slots=True)
class Finished:
    """A program that ended: ``exit_code`` below 0 is a signal, ``seconds`` as the rig counted.

    ``samples`` are what a kernel attribute held meanwhile, with the rig's time (Unix seconds).
    """

    argv: tuple[str, ...]
    exit_code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    samples: tuple[tuple[float, str], ...] = ()


class Host:
    """A rig's host, connected.  Methods may be called from several threads.

    Every method may raise HostLost, at once when the connection ends; file and
    device methods raise FileTrouble with the kernel's errno (a missing file: ENOENT).
    """

    def __init__(self, spec: HostSpec, deadline: float) -> None:
        self.name = "localhost" if spec.reach == "local" else spec.address
        self.versions: dict[str, str] = {}
        self.after_reconnect: list[Callable[[], None]] = []
        self._spec = spec
        self._paths: dict[int, str] = {}  # of handles, for messages
        self._wire = self._connect(deadline, fresh=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self, deadline: float, *, fresh: bool) -> Wire:
        spec = self._spec
        if spec.reach == "local":
            argv = [sys.executable, "-IS", "-c", BOOTSTRAP]
        else:
            remote = f"exec python3 -IS -c '{BOOTSTRAP}'"
            argv = [*ssh.command(spec.address, spec.ssh_config, fresh=fresh), remote]
        try:
            return Wire(argv, self.name, self._explain, deadline)
        except FileNotFoundError:
            raise missing("this machine", argv[0]) from None

    def _explain(self, code: int | None, said: str) -> RigTrouble:
        if self._spec.reach == "local":
            return HostLost(
                f"localhost: Leadline's agent ended (exit code {code}){last_lines(said)}"
            )
        return ssh.explain(self._spec.address, self._spec.ssh_config, code, said)

    # Programs.

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        deadline: float,
        check: bool = True,
        on_output: Callable[[str, bytes], None] | None = None,
        handle: int | None = None,
        sample: tuple[str, float] | None = None,
    ) -> Finished:
        """Run a program on the rig until it ends, at most ``deadline`` seconds.

        ``on_output(stream, data)`` hears its ``"stdout"`` and ``"stderr"`` as they come.
        With ``handle`` (of ``hold_device``) the program inherits the device, and
        ``{device}`` in an argument becomes its path.  ``sample`` is a kernel attribute that
        is read every so many seconds.  Any exception in here, Ctrl-C too, ends the program.
        Raises ProgramMissing, ProgramFailed (``check``), DeadlinePassed (the program has
        been ended).
        """
        call = self._begin_program(argv, input, deadline, handle, sample)
        said = {"stdout": bytearray(), "stderr": bytearray()}
        try:
            for message in call.messages(time.monotonic() + deadline + KILL_S):
                for stream in said.keys() & message.keys():
                    data = unpack(message[stream])
                    said[stream] += data
                    if on_output:
                        on_output(stream, data)
        except BaseException:
            call.stop(KILL_S)
            raise
        out, err = bytes(said["stdout"]), bytes(said["stderr"])
        end = self._program_end(message, argv)
        samples = tuple((float(at), str(value)) for at, value in end["samples"])
        if end["why"]:
            late = self._too_slow(argv, deadline, end["left"])
            raise DeadlinePassed(late, out, err, end["left"], samples)
        if check and end["code"] != 0:
            raise ProgramFailed(self.name, argv, end["code"], out, err)
        return Finished(tuple(argv), end["code"], out, err, end["seconds"], samples)

    def start(self, argv: Sequence[str], *, input: bytes = b"") -> Running:
        """Start a program that runs until it is stopped or the connection ends."""
        return Running(self._begin_program(argv, input), self.name, argv)

    def _begin_program(
        self,
        argv: Sequence[str],
        given: bytes = b"",
        deadline: float | None = None,
        handle: int | None = None,
        sample: tuple[str, float] | None = None,
    ) -> Call:
        what = {"argv": list(argv), "input": pack(given), "handle": handle, "sample": sample}
        return self._wire.begin("run", deadline=deadline, **what)

    def _program_end(self, message: Message, argv: Sequence[str]) -> Message:
        if message.get("os_error", {}).get("errno") == errno.ENOENT:
            raise missing(self.name, argv[0])
        return self._done(message, argv[0])

    def _too_slow(self, argv: Sequence[str], deadline: float, left: list[int]) -> str:
        what = f"{self.name}: {printable(' '.join(argv))}: not finished within {deadline:g} s"
        if left:
            return f"{what}; SIGKILL did not end process {left}: it waits for the drive or kernel"
        return f"{what}, and ended"

    # Files.

    def read_file(self, path: str) -> bytes:
        """A file's contents, at most 64 MiB."""
        return self.read_with_path(path)[0]

    def read_with_path(self, path: str) -> tuple[bytes, str]:
        """A file's contents, and its path with every symbolic link followed."""
        call = self._wire.begin("read", path=path)
        *pieces, last = call.messages(time.monotonic() + CALL_S)
        contents = b"".join(unpack(piece["stdout"]) for piece in pieces)
        return contents, str(self._done(last, path)["real_path"])

    def read_files(self, paths: Sequence[str]) -> dict[str, bytes | None]:
        """Many small files in one round trip; None for one that cannot be read."""
        contents = self._ask("read_many", paths=list(paths))["contents"]
        return {path: None if c is None else unpack(c) for path, c in contents.items()}

    def write_file(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Replace or make a regular file in one step, and on the medium."""
        self._ask("write", path=path, data=pack(data), mode=mode)

    def write_value(self, path: str, text: str) -> None:
        """Write a kernel attribute; for the journal, which knows how to undo it."""
        self._ask("write_value", path=path, data=pack(text.encode()))

    def list_dir(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        return list(self._ask("list", path=path)["names"])

    def read_link(self, path: str) -> str:
        """The target of a symbolic link, as it is written there."""
        return str(self._ask("link", path=path)["target"])

    def exists(self, path: str) -> bool:
        """Whether a path leads to something."""
        return bool(self._ask("exists", path=path)["exists"])

    def remove_file(self, path: str) -> None:
        """Remove a file, and have that on the medium."""
        self._ask("remove", path=path)

    def make_dir(self, path: str) -> None:
        """Make a directory whose parent is there."""
        self._ask("make_dir", path=path)

    def remove_dir(self, path: str) -> None:
        """Remove a directory that is empty, or one of those that the kernel makes and unmakes."""
        self._ask("remove_dir", path=path)

    # Devices.

    def hold_device(self, path: str, *, exclusive: bool = True) -> int:
        """Open a device; ``exclusive``: no file system, md, LVM or swap can claim it meanwhile.

        Returns a handle, good until ``release_device`` or the connection's end.
        Raises DeviceBusy when something has claimed it already.
        """
        try:
            handle = int(self._ask("hold", path=path, exclusive=exclusive)["handle"])
        except FileTrouble as trouble:
            if trouble.errno == errno.EBUSY:
                raise DeviceBusy(self.name, path) from None
            raise
        self._paths[handle] = path
        return handle

    def release_device(self, handle: int) -> None:
        """Close a held device."""
        self._ask("release", path=self._paths.pop(handle, ""), handle=handle)

    def sg_io(self, handle: int, cdb: bytes, length: int, deadline: float) -> bytes:
        """Send a SCSI command with data in; returns at most ``length`` bytes.

        The caller builds the CDB (SAT-4 12.2.2 for ATA PASS-THROUGH).  CommandRefused, with
        the sense data, when it ends in CHECK CONDITION or never reached the device.
        """
        answer = self._ask(
            "sg_io",
            deadline + KILL_S,
            path=f"{self._paths.get(handle, '')} command {cdb.hex()}",
            handle=handle,
            cdb=pack(cdb),
            length=length,
            timeout_ms=max(1, round(deadline * 1000)),
        )
        sense, status = unpack(answer["sense"]), int(answer["status"])
        host_status, driver_status = answer["host_status"], answer["driver_status"] & ~DRIVER_SENSE
        found = f"status {status:02x}h, host {host_status:02x}h, driver {driver_status:02x}h"
        refused = CommandRefused("", status, sense)
        recovered = status in (0, CHECK_CONDITION) and refused.key in GOOD_KEYS
        if host_status or driver_status or (status and not recovered):
            what = f"{self.name}: {self._paths.get(handle, '')} command {cdb.hex()} failed: {found}"
            raise CommandRefused(f"{what}, sense {sense.hex() or 'none'}", status, sense)
        return unpack(answer["data"])

    # Locked files: for lease.py and journal.py.

    def lock_file(self, path: str, *, shared: bool, patience: float = 0.0) -> int | bytes:
        """A handle when the file's lock is now ours, else what its holder wrote into it.

        The file and its directory are made when they are not there.  ``shared``: among all
        users of the rig; otherwise nobody else may write there.  Tries for ``patience`` seconds.
        """
        limit = time.monotonic() + patience
        while True:
            answer = self._ask("lock", path=path, shared=shared)
            if "handle" in answer:
                self._paths[answer["handle"]] = path
                return int(answer["handle"])
            if time.monotonic() >= limit:
                return unpack(answer["busy"])
            time.sleep(LOCK_RETRY_S)

    def append(self, handle: int, data: bytes, *, replace: bool = False) -> None:
        """Append to a locked file (or replace its contents), fsynced when this returns."""
        path = self._paths.get(handle, "")
        self._ask("append", path=path, handle=handle, data=pack(data), replace=replace)

    def unlock_file(self, handle: int) -> None:
        """Free a file's lock."""
        self._ask("release", path=self._paths.pop(handle, ""), handle=handle)

    # The connection.

    def boot_id(self) -> str:
        """The kernel's random id of this boot."""
        return str(self._wire.hello["boot_id"])

    def is_root(self) -> bool:
        """Whether we are root on the rig."""
        return bool(self._wire.hello["uid"] == 0)

    def state_directory(self) -> str:
        """Where Leadline keeps what must survive it on the rig."""
        if self.is_root():
            return "/var/lib/leadline"
        base = self._wire.hello["state"] or self._wire.hello["home"] + "/.local/state"
        return f"{base}/leadline"

    def now(self) -> float:
        """The rig's clock, in Unix seconds."""
        return float(self._ask("ping")["now"])

    def alive(self) -> bool:
        """Whether the rig answers now."""
        try:
            self._ask("ping", 5.0, path="ping")
        except RigTrouble:
            return False
        return True

    def reconnect(self, deadline: float) -> None:
        """Connect anew, trying until ``deadline`` seconds have passed; for after a reboot.

        Programs, handles and locks of the old connection are gone; leases and journals
        are taken up again, all that can be; of those that cannot the first's RigTrouble
        is raised.  A changed or unknown host key ends the trying at once, with HostLost;
        otherwise DeadlinePassed tells the last attempt's trouble.
        """
        self._wire.close()
        limit = time.monotonic() + deadline
        while True:
            attempt = min(limit - time.monotonic(), ATTEMPT_S)
            try:
                self._wire = self._connect(attempt, fresh=True)
                break
            except (HostLost, DeadlinePassed) as trouble:
                if isinstance(trouble, HostLost) and trouble.reason in HOPELESS:
                    raise
                if time.monotonic() + RETRY_S > limit:
                    what = f"{self.name}: no connection within {deadline:g} s; at last: {trouble}"
                    raise DeadlinePassed(what) from None
            time.sleep(RETRY_S)
        failed: list[RigTrouble] = []
        for take_up in list(self.after_reconnect):
            try:
                take_up()
            except RigTrouble as trouble:
                failed.append(trouble)
        if failed:
            raise failed[0]

    def close(self) -> None:
        """End the connection; when this returns, its programs are gone and its locks free."""
        self._wire.close()

    def _ask(self, operation: str, deadline: float = CALL_S, **arguments: Any) -> Message:
        call = self._wire.begin(operation, **arguments)
        *_, last = call.messages(time.monotonic() + deadline)
        return self._done(last, str(arguments.get("path", operation)))

    def _done(self, message: Message, path: str) -> Message:
        if "os_error" in message:
            error = message["os_error"]
            raise file_trouble(self.name, path, error["errno"], error["text"])
        if "defect" in message:
            raise RuntimeError(f"Leadline's agent on {self.name} failed:\n{message['defect']}")
        return dict(message["done"])


def open_host(spec: HostSpec, *, deadline: float = 30.0) -> Host:
    """Connect to a rig's host, this machine or by ssh; a context manager.

    Raises HostLost (``reason`` says why), ProgramMissing (ssh here, python3 there),
    DeadlinePassed.
    """
    return Host(spec, deadline)
