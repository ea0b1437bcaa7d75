"""Load on a drive by fio, cut into slices."""
