"""A recorded depth sweep, judged: from runs that are over to verdicts, or to why there is none."""
