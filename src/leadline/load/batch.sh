# One batch of slices, on the rig: sh -c THIS leadline-slices TURN PIPES BY FIO-ARGUMENTS...
# The job file comes on stdin; what fio wrote leaves on stdout as a tar archive.
# TURN is the script turn.sh, PIPES are names of ours, BY is what starts fio, or nothing:
# nothing that a drive says is a part of any.
set -eu
turn=$1
pipes=$2
by=$3
shift 3
# Logs are kept in memory where there is such a place: not on a disk of the rig.
base=/tmp
[ -w /dev/shm ] && base=/dev/shm
# What a batch left that was killed outright goes with the next one.
for old in "$base"/leadline-slices.*; do
    [ -d "$old" ] || continue
    pid=${old##*.}
    if [ "$pid" = $$ ] || ! kill -0 "$pid" 2> /dev/null; then rm -rf "$old"; fi
done
dir=$base/leadline-slices.$$
mkdir -m 700 "$dir"
trap 'rm -rf "$dir"' EXIT
# Stopped by a deadline or a lost connection: say what fio had to say.
stopped() {
    sed -e '/^{/,$d' -e '/Saving output of/d' output.json fio.out >&2
    exit 143
}
trap stopped HUP INT TERM
cd "$dir"
printf '%s\n' "$turn" > turn.sh
# shellcheck disable=SC2086 # names of ours, without blanks
mkfifo $pipes
code=0
# shellcheck disable=SC2086 # words of ours
$by fio --output-format=json --output=output.json "$@" - > fio.out 2>&1 || code=$?
echo "$code" > exit-code
tar -cf - .
