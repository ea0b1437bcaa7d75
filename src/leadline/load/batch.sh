# One batch of slices, on the rig: sh -c THIS leadline-slices GATES GOS FIO-ARGUMENTS...
# The job file comes on stdin; what fio wrote leaves on stdout as a tar archive.
# GATES is the number of slices, GOS the names of the jobs that follow a slice's first.
# Names and numbers of ours arrive as arguments; nothing of the drive's is in this text.
set -eu
gates=$1
gos=$2
shift 2
# Logs are kept in memory where there is such a place: not on a disk of the rig.
base=/tmp
[ -w /dev/shm ] && base=/dev/shm
dir=$(mktemp -d "$base/leadline-slices.XXXXXX")
trap 'rm -rf "$dir"' EXIT
# Stopped by a deadline or a lost connection: say what fio had to say.
trap 'sed -e "/^{/,\$d" -e "/Saving output of/d" output.json fio.out >&2; exit 143' HUP INT TERM
cd "$dir"
cat > slices.fio

# fio runs this at the start and the end of each job.  Every job is there from the start,
# asleep on a named pipe, and takes its turn when the slice before has drained: nothing
# polls, no time is guessed, and nothing overlaps.
cat > turn.sh <<'END'
set -eu
role=$1
slice=$2
case $role in
lead) # SLICE AWAITED FOLLOWERS [PATH DEPTH]: wait until AWAITED jobs have told this slice
    [ "$slice" -eq 0 ] || echo parked > gate.0
    exec 3<> "gate.$slice"
    left=$3
    while [ "$left" -gt 0 ]; do
        read -r _ <&3
        left=$((left - 1))
    done
    if [ "$#" -gt 4 ]; then
        # A refusal must not stop the turns: what is read back tells.
        echo "$6" > "$5" || true
        cat "$5" || true
    fi
    follower=1
    while [ "$follower" -le "$4" ]; do
        echo go > "go.$slice.$follower"
        follower=$((follower + 1))
    done
    ;;
follow) # SLICE FOLLOWER: wait for the first job of the same slice
    echo parked > gate.0
    read -r _ < "go.$slice.$3"
    ;;
pass) # SLICE: tell this slice that a job before it is done
    echo done > "gate.$slice"
    ;;
esac
END

i=0
while [ "$i" -lt "$gates" ]; do
    mkfifo "gate.$i"
    i=$((i + 1))
done
for go in $gos; do mkfifo "$go"; done
code=0
fio --output-format=json --output=output.json "$@" slices.fio > fio.out 2>&1 || code=$?
echo "$code" > exit-code
rm -f gate.* go.*
tar -cf - .
