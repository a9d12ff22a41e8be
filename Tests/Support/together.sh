# Commands that run at the same time, for scripts of bash whose nodes and clients wait most of the time.
#
#   at_once COMMAND...   starts one, and keeps what it says
#   all_done             waits for all, prints what each has said in the order of their start, and fails if one failed

together_said=$(mktemp -d)
together_pids=()

at_once() {
    "$@" >"$together_said/${#together_pids[@]}" 2>&1 &
    together_pids+=($!)
}

all_done() {
    local number status=0
    for number in "${!together_pids[@]}"; do
        wait "${together_pids[$number]}" || status=1
        cat "$together_said/$number"
    done
    rm -rf "$together_said"
    return $status
}
