"""What `leadline trace replay` says: a table for people, and the same as plain values."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from leadline.drive.text import plain
from leadline.trace.asked import Answer
from leadline.trace.gain import Estimate, TraceGain, gain_of, overall, share_text


def document(answer: Answer | None) -> dict[str, object]:
    """The gains, and all that they come from, as plain values."""
    if answer is None:
        return {"traces": []}
    gains = [gain_of(each.trace, each.rounds) for each in answer.traces]
    whole = overall(gains)
    return {
        "drive": answer.drive,
        "ncq_depth": answer.depth,
        "wrote": answer.wrote,
        "gain": asdict(whole) if whole else None,
        "traces": [
            {**each.model_dump(mode="json"), **asdict(gain)}
            for each, gain in zip(answer.traces, gains, strict=True)
        ],
    }


def lines(answer: Answer) -> Iterator[str]:
    """The table for people, and what there is to say of it."""
    gains = [gain_of(each.trace, each.rounds) for each in answer.traces]
    on = "no NCQ: a baseline" if answer.depth is None else f"NCQ on: depth {answer.depth}"
    yield plain(f"{answer.drive}; {on}; {'reads and writes' if answer.wrote else 'reads alone'}")
    yield from _table(gains)
    if whole := overall(gains):
        yield f"gain over {whole.count} trace(s): {share_text(whole)}, (off - on) / off"
    for side in dict.fromkeys(side for each in answer.traces for side in each.sides):
        yield plain(f"note: {side}")
    for trace in answer.traces:
        if void := [each for each in trace.rounds if each.voids]:
            names = ", ".join(dict.fromkeys(name for each in void for name in each.voids))
            yield plain(f"note: {trace.trace}: {len(void)} rounds count for nothing: {names}")
        for note in trace.notes:
            yield plain(f"note: {trace.trace}: {note}")


def _table(gains: Sequence[TraceGain]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("trace", "off, ms", "on, ms", "gain", "reads", "writes")]
    rows += [
        (
            plain(each.trace),
            _ms(each.off_s),
            _ms(each.on_s),
            *map(share_text, (each.gain, each.reads, each.writes)),
        )
        for each in gains
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for name, *cells in rows:
        shown = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *shown])


def _ms(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    spread = "" if estimate.high is None else f" +-{1e3 * (estimate.high - estimate.mean):.2g}"
    return f"{1e3 * estimate.mean:.4g}{spread}"
