"""How the system's ssh is run, and what its complaints mean."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from leadline.errors import RigTrouble
from leadline.host.programs import install_hint
from leadline.host.trouble import HostLost, ProgramMissing, last_lines, printable

# The user's configuration, keys, known hosts and jump hosts hold.  These alone are ours:
# never ask, notice a dead link within 15 s, and carry nothing but the agent's conversation.
OPTIONS = (
    "BatchMode=yes",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    "LogLevel=INFO",  # at ERROR it does not say that a server stopped responding
    "ControlMaster=no",
    "ClearAllForwardings=yes",
    "RemoteCommand=none",
    "PermitLocalCommand=no",
)

# reason, what ssh says (OpenSSH 7.4 to 10, LC_ALL=C), what it means, the remedy.
_COMPLAINTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "host-key-changed",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one that was known",
        "find out why (reinstalled? another machine?); if it is right, forget the old: {forget}",
    ),
    (
        "host-key-unknown",
        r"Host key verification failed|host key is known for",
        "its host key is not known yet",
        "log in once by hand, compare the key, and accept it",
    ),
    (
        "permission",
        r"Permission denied \(|Too many authentication failures",  # with what it tried; not a shell
        "it does not let {user} in with the keys that ssh offers",
        "put the public key into that user's authorized_keys there, or name the key "
        "(IdentityFile) in the ssh configuration; a key with a passphrase needs ssh-agent",
    ),
    (
        "name",
        r"Could not resolve hostname|Name or service not known",
        "its name is unknown",
        "check `address` in the rig file and the Host aliases of the ssh configuration",
    ),
    (
        "refused",
        r"Connection refused",
        "it refuses the connection",
        "is it up, is sshd running there, is the port right?",
    ),
    (
        "timeout",
        r"timed out|No route to host|Network is unreachable|Host is down|not responding",
        "it does not answer",
        "is it powered on and on this network?",
    ),
    (
        "configuration",
        r"Bad configuration option|Bad owner or permissions|Can't open user config|"
        r"terminating, \d+ bad configuration",
        "ssh does not accept its configuration",
        "correct the file that it names",
    ),
)


def command(address: str, config: Path | None, *, fresh: bool) -> list[str]:
    """The ssh command line up to the address; ``fresh``: never through a shared connection,
    whose other end may be dead since the rig was switched off."""
    own_way = ["ConnectTimeout=5", "ControlPath=none"] if fresh else ["ConnectTimeout=10"]
    options = [*OPTIONS, *own_way]
    own = ["-F", str(config)] if config else []
    return ["ssh", *own, "-T", "-x", *(word for o in options for word in ("-o", o)), "--", address]


def by_hand(address: str, config: Path | None) -> str:
    """The command with which a person tries the same."""
    return shlex.join(["ssh", *(["-F", str(config)] if config else []), address, "true"])


def explain(address: str, config: Path | None, code: int | None, said: str) -> RigTrouble:
    """The error for an ssh client that ended with ``code`` and these words on stderr."""
    tried = f"try by hand: {by_hand(address, config)}"
    if code == 127 or re.search(r"python3: (command )?not found|python3: No such file", said):
        return ProgramMissing(
            f"{address}: python3 is not installed there; {install_hint('python3')}"
        )
    if "python3 too old" in said:
        return RigTrouble(
            f"{address}: python3 there is too old; 3.8 or newer is needed" + last_lines(said)
        )
    for reason, pattern, meaning, remedy in _COMPLAINTS:
        if re.search(pattern, said):
            what = meaning.format(user=_user(said))
            how = remedy.format(forget=_forget(address, said))
            return HostLost(f"{address}: {what}; {how}; {tried}{last_lines(said)}", reason)
    return HostLost(
        f"{address}: the connection ended (ssh: {_ending(code)}); {tried}{last_lines(said)}"
    )


def _user(said: str) -> str:
    """``Permission denied`` is preceded by ``user@host:`` since OpenSSH 7.6."""
    found = re.search(r"(\S+)@\S+: Permission denied", said)
    return printable(found.group(1)) if found else "you"


def _forget(address: str, said: str) -> str:
    """ssh-keygen -R for the line that ssh calls offending; ssh often prints it itself."""
    given = re.search(r"^\s*(ssh-keygen .*-R .*)$", said, re.MULTILINE)
    if given:
        return printable(given.group(1)).strip()
    found = re.search(r"Offending \S+ key in (.+):(\d+)", said)
    host = address.rpartition("@")[2]
    file = printable(found.group(1)) if found else "~/.ssh/known_hosts"
    return shlex.join(["ssh-keygen", "-f", file, "-R", host])


def _ending(code: int | None) -> str:
    if code is None:
        return "it hung and was ended"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
