# One batch of slices, on the rig: sh -c THIS leadline-slices PIPES FIO-ARGUMENTS...
# The job file comes on stdin; what fio wrote leaves on stdout as a tar archive.
# PIPES are names of ours; nothing that a drive says is ever part of this text.
set -eu
pipes=$1
shift
# Logs are kept in memory where there is such a place: not on a disk of the rig.
base=/tmp
[ -w /dev/shm ] && base=/dev/shm
dir=$(mktemp -d "$base/leadline-slices.XXXXXX")
trap 'rm -rf "$dir"' EXIT
# Stopped by a deadline or a lost connection: say what fio had to say.
stopped() {
    sed -e '/^{/,$d' -e '/Saving output of/d' output.json fio.out >&2
    exit 143
}
trap stopped HUP INT TERM
cd "$dir"
cat > slices.fio
# shellcheck disable=SC2086 # names of ours, without blanks
mkfifo $pipes

# fio runs this at the start of each job.  Every job is there from the start, asleep on a
# named pipe, and takes its turn when the slice before has drained: nothing polls, no time
# is guessed, and nothing overlaps.  The pipes on which a slice awaits the one before have
# the names of the files into which fio puts what exec_postrun says.  Nothing is used that
# the shell has not built in: on an emulated rig a process costs 20 ms of each gap.
# A depth that is refused must not stop the turns; what is said then tells.
cat > turn.sh <<'END'
while [ "$#" -gt 0 ]; do
    case $1 in
    gather) # until so many other jobs are asleep
        exec 3<> asleep
        left=$2
        while [ "$left" -gt 0 ]; do
            read -r _ <&3
            left=$((left - 1))
        done
        ;;
    tell) echo "$1" > "$2" ;;
    await) read -r _ < "$2" ;;
    depth)
        echo "$3" > "$2"
        read -r now < "$2"
        echo "$now"
        shift
        ;;
    esac
    shift 2
done
END

code=0
fio --output-format=json --output=output.json "$@" slices.fio > fio.out 2>&1 || code=$?
echo "$code" > exit-code
# shellcheck disable=SC2086
rm -f $pipes
tar -cf - .
