# Replays, on the rig: sh -c THIS leadline-replay FIO-ARGUMENTS...
# The job file and its iologs come on stdin as a tar archive; fio's JSON, its logs of requests, where
# it was to keep some, and the depths that were read back leave on stdout as another, what else it
# said on stderr, and its exit code is this one's.
set -eu
# In memory where there is such a place: not on a disk of the rig.
base=/tmp
[ -w /dev/shm ] && base=/dev/shm
# What a replay left that was killed outright goes with the next one.
for old in "$base"/leadline-replay.*; do
    [ -d "$old" ] || continue
    pid=${old##*.}
    if [ "$pid" = $$ ] || ! kill -0 "$pid" 2> /dev/null; then rm -rf "$old"; fi
done
dir=$base/leadline-replay.$$
mkdir -m 700 "$dir"
trap 'rm -rf "$dir"' EXIT
trap 'exit 143' HUP INT TERM
cd "$dir"
tar -xzf -
code=0
fio --output-format=json --output=output.json --eta=never "$@" job.fio >&2 || code=$?
set -- output.json
for each in *_lat.log *.prerun.txt; do
    [ ! -e "$each" ] || set -- "$@" "$each"
done
tar -czf - "$@"
exit "$code"
