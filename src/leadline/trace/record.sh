# Record a drive's requests, on the rig: sh -c THIS leadline-record NODE SECONDS
# blkparse's text leaves on stdout, compressed; what else was said, on stderr.
set -eu
# In memory where there is such a place: what is recorded is not to load a disk of the rig.
base=/tmp
[ -w /dev/shm ] && base=/dev/shm
for old in "$base"/leadline-record.*; do
    [ -d "$old" ] || continue
    pid=${old##*.}
    if [ "$pid" = $$ ] || ! kill -0 "$pid" 2> /dev/null; then rm -rf "$old"; fi
done
dir=$base/leadline-record.$$
mkdir -m 700 "$dir"
mounted=
ended() {
    rm -rf "$dir"
    # Busy where somebody else has begun to trace: then it is left to them.
    [ -z "$mounted" ] || umount /sys/kernel/debug 2> /dev/null || :
}
trap ended EXIT
trap 'exit 143' HUP INT TERM
cd "$dir"
if [ ! -d /sys/kernel/debug/block ]; then
    mount -t debugfs debugfs /sys/kernel/debug
    mounted=yes
fi
blktrace -d "$1" -a issue -a complete -a requeue -w "$2" -o events > said 2>&1 || {
    code=$?
    cat said >&2
    exit "$code"
}
cat said >&2
blkparse -q -i events > text
gzip -1 -c text
