"""Talking to a running QEMU: one short connection for each request, and a deadline on it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from qemu.qmp import ConnectError, ExecuteError, QMPClient, QMPError

from leadline.errors import RigTrouble
from leadline.host.trouble import printable

DEADLINE_S = 10.0
_RETRY_S = 0.05

_Asking = Callable[[QMPClient], Awaitable[object]]


def execute(socket: Path, command: str, arguments: Mapping[str, object]) -> object:
    """One QMP command's answer.  RigTrouble when QEMU refuses it or does not answer in time."""

    async def ask(client: QMPClient) -> object:
        return await client.execute(command, arguments)

    return _run(socket, command, ask)


def monitor(socket: Path, line: str) -> None:
    """One command of the human monitor, for what QMP has not got; these are silent when right."""
    said = execute(socket, "human-monitor-command", {"command-line": line})
    if said:
        raise RigTrouble(f"QEMU refuses `{line}`: {printable(str(said)).strip()}")


def plug(socket: Path, node: Mapping[str, object], device: Mapping[str, object]) -> None:
    """Add a block node, and the device that uses it."""

    async def ask(client: QMPClient) -> None:
        await client.execute("blockdev-add", node)
        await client.execute("device_add", device)

    _run(socket, "device_add", ask)


def unplug(socket: Path, device: str, node: str) -> None:
    """Remove a device and its block node; returns when QEMU says that the device has gone."""

    async def ask(client: QMPClient) -> None:
        with client.listener("DEVICE_DELETED") as deleted:
            await client.execute("device_del", {"id": device})
            async for event in deleted:
                data = event["data"]
                if isinstance(data, dict) and data.get("device") == device:
                    break
        await client.execute("blockdev-del", {"node-name": node})

    _run(socket, "device_del", ask)


async def _connect(socket: Path) -> QMPClient:
    """A QEMU that was started just now makes its socket in a moment."""
    while True:
        client = QMPClient("leadline")
        try:
            await client.connect(str(socket))
        except ConnectError:
            await asyncio.sleep(_RETRY_S)
        else:
            return client


def _run(socket: Path, command: str, ask: _Asking) -> object:
    async def connected() -> object:
        async with asyncio.timeout(DEADLINE_S):
            client = await _connect(socket)
            try:
                return await ask(client)
            finally:
                await client.disconnect()

    try:
        return asyncio.run(connected())
    except TimeoutError:
        raise RigTrouble(
            f"QEMU did not carry out {command} in {DEADLINE_S:.0f} s; is this machine overloaded?"
        ) from None
    except ExecuteError as refused:
        raise RigTrouble(f"QEMU refuses {command}: {printable(str(refused))}") from refused
    except (QMPError, OSError) as trouble:
        raise RigTrouble(f"QEMU cannot be asked for {command}: {trouble}") from trouble
