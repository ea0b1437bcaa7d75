"""The ways into a virtual rig: ssh on a loopback port with keys of its own, and the PDU's line."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from leadline.errors import Misuse, RigTrouble
from leadline.host.programs import install_hint
from leadline.inventory.pdu import PduSpec
from leadline.inventory.pdu_dialogue import DialogueSpec
from leadline.inventory.rig import Rig
from leadline.virtual.initrd import Keys
from leadline.virtual.pdus import units
from leadline.virtual.state import State

_KEYGEN_SECONDS = 30.0


def reserve_port() -> socket.socket:
    """A loopback port that stays ours while QEMU, which listens on it, is switched off.

    Bound and not listening: with SO_REUSEADDR on both sides Linux lets QEMU listen on it, and
    gives it to nobody who asks for just any port.
    """
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def pdu_link(rig: Rig, pdu: PduSpec) -> Path:
    """Where the PDU's serial port appears.  Misuse when the rig file looks elsewhere."""
    link = State(rig.name).root / pdu.name
    if Path(pdu.port) != link:
        raise Misuse(
            f"{rig.path}: pdus: found port {pdu.port} for {pdu.name}, expected "
            f"~/.cache/leadline/virtual/{rig.name}/{pdu.name}: that is where the virtual PDU is"
        )
    return link


def check_unit(rig: Rig, index: int) -> None:
    """Misuse for a PDU whose virtual unit would come up, and fail at the first switching."""
    pdu = rig.pdus[index]
    where = f"{rig.where('pdus', index, 'family')}: pdus[{pdu.name}].family: found {pdu.family}"
    if pdu.family == "control-line":
        raise Misuse(
            f"{where}, expected another family: the line of a virtual PDU is a pseudo-terminal, "
            "which has no DTR and no RTS"
        )
    spoken = units("described")[0].SPEC["dialogue"]
    if pdu.dialogue is not None and pdu.dialogue != DialogueSpec.model_validate(spoken):
        raise Misuse(
            f"{where} with a dialogue that no virtual unit speaks, expected that of the SWPDU in "
            "docs/how-to/describe-a-pdu.md, or another family"
        )


def check_host(rig: Rig) -> None:
    """Misuse when the rig file would not reach the guest."""
    if "@" in rig.host.address:
        raise Misuse(
            f"{rig.where('host', 'address')}: host.address: found {rig.host.address}, expected "
            f"{rig.host.address.rpartition('@')[2]}: it is root who is let in"
        )
    expected = State(rig.name).ssh_config
    if rig.host.reach != "ssh" or rig.host.ssh_config != expected:
        raise Misuse(
            f"{rig.path}: host: expected reach: ssh and ssh_config: "
            f"~/.cache/leadline/virtual/{rig.name}/ssh_config, which the virtual rig writes"
        )


def make_keys(rig: Rig, state: State, port: int) -> Keys:
    """Make both key pairs and the ssh configuration that knows them."""
    host, user = state.root / "host_key", state.root / "id_ed25519"
    for path, comment in ((host, f"leadline-{rig.name}"), (user, f"leadline on {rig.name}")):
        _keygen(path, comment)
    alias = f"leadline-{rig.name}"
    public = host.with_suffix(".pub").read_text().split()
    known = state.root / "known_hosts"
    known.write_text(f"{alias} {public[0]} {public[1]}\n")
    state.ssh_config.write_text(
        f"# Written by `leadline virtual up`, for as long as that rig is up.\n"
        f"Host {rig.host.address}\n"
        f"  HostName 127.0.0.1\n"
        f"  Port {port}\n"
        f"  User root\n"
        f'  IdentityFile "{user}"\n'
        f"  IdentitiesOnly yes\n"
        f"  IdentityAgent none\n"
        f"  HostKeyAlias {alias}\n"
        f'  UserKnownHostsFile "{known}"\n'
        f"  GlobalKnownHostsFile none\n"
        f"  StrictHostKeyChecking yes\n"
        f"  PreferredAuthentications publickey\n"
        f"  ConnectTimeout 10\n"
        f"  Compression no\n"
    )
    keys = Keys(host.read_bytes(), user.with_suffix(".pub").read_bytes())
    host.unlink()
    return keys


def _keygen(path: Path, comment: str) -> None:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
    try:
        subprocess.run(
            words,
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_KEYGEN_SECONDS,
        )
    except FileNotFoundError:
        raise RigTrouble(f"ssh-keygen is not installed: {install_hint('ssh-keygen')}") from None
    except subprocess.CalledProcessError as failed:
        raise RigTrouble(f"{path}: no key could be made: {failed.stderr.strip()}") from failed
    except subprocess.TimeoutExpired:
        raise RigTrouble(f"{path}: ssh-keygen took over {_KEYGEN_SECONDS:.0f} s") from None
