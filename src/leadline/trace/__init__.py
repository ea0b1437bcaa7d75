"""Block traces: generated or recorded, kept as iologs of fio, checked, fitted, replayed."""
