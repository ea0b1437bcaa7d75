# What fio runs at the start of each job, in a shell of its own: WORD ARGUMENT ...
#
# Every job of a batch is there from the start, asleep on a named pipe, and takes its turn
# when the slice before has drained: nothing polls, no time is guessed, nothing overlaps.
# The pipes on which a slice awaits the one before have the names of the files into which
# fio puts what exec_postrun says.  Nothing is used that the shell has not built in: on an
# emulated rig a process costs 20 ms of each gap.  A depth that is refused must not stop the
# turns; what is said then tells.
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
