"""A verdict in words that a sceptical performance engineer can act on."""

from leadline.verdict.verdict import Outcome, RateEstimate, Verdict

_REASONS = {
    "marginal": "the ratio is so near the threshold that more drive time would not tell",
    "budget": "the drive time allowed for one claim is spent; raise it with --drive-time",
    "void": "the evidence does not count",
}


def explain(
    verdict: Verdict, *, cell: str, statement: str, left: str, right: str, source: str, repeat: str
) -> str:
    """The whole story of one verdict: what was claimed, what was found, what to do.

    `statement` is the claim as the test says it, `left` and `right` its two quantities
    without factors, `source` where the threshold comes from ("" if the test gives it),
    `repeat` the command that measures the same again.
    """
    lines = [_headline(verdict, cell, statement)]
    for name, rate in ((left, verdict.numerator), (right, verdict.denominator)):
        if rate is not None:
            lines.append(f"  {name}: {_rate(rate)}")
    if verdict.estimate is not None:
        lines.append(f"  ratio: {ratio_text(verdict)}, over {verdict.pairs} pairs of slices")
    cited = f" ({source})" if source else ""
    lines.append(f"  threshold: {verdict.direction} {verdict.threshold:g}{cited}")
    lines.append(f"  cost: {verdict.drive_seconds:.1f} drive-seconds")
    lines += [f"  void: {void}" for void in verdict.voids]
    lines += [f"  note: {note}" for note in verdict.notes]
    lines.append(f"  repeat: {repeat}")
    return "\n".join(lines)


def _headline(verdict: Verdict, cell: str, statement: str) -> str:
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return f"INCONCLUSIVE ({verdict.reason}): {statement} on {cell}: {_REASONS[verdict.reason]}"
    does = "holds" if verdict.outcome is Outcome.PASS else "does not hold"
    return f"{verdict.outcome}: {statement} {does} on {cell}"


def _rate(rate: RateEstimate) -> str:
    return f"{rate.rate:.4g} requests/s [{rate.low:.4g}, {rate.high:.4g}]"


def ratio_text(verdict: Verdict) -> str:
    """The estimated ratio with its interval, as in "7.21 [6.98, 7.45]"; "" when there is none."""
    if verdict.estimate is None or verdict.low is None or verdict.high is None:
        return ""
    return f"{verdict.estimate:.3g} [{verdict.low:.3g}, {verdict.high:.3g}]"
