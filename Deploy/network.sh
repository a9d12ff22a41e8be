# Sourced by Deploy/cluster: hosts made of network namespaces, so that what lies between two nodes can be cut.
# Needs root, and a kernel that has namespaces and nftables. A node's host hears nobody whom its set "deaf" names.

network_file() { printf '%s/network' "$directory"; }
has_network() { [ -s "$(network_file)" ]; }
network_number() { cat "$(network_file)"; }
namespace_of() { printf 'stratus-%s-%s' "$(network_number)" "$(name_of "$1")"; }
hub_name() { printf 'stratus-%s' "$(network_number)"; }
link_name() { printf 'stratus%s' "$(network_number)"; }

# host_of N: where node N listens.
host_of() { if has_network; then printf '10.78.%s.%s' "$(network_number)" "$1"; else printf 127.0.0.1; fi; }

# at_host N COMMAND...: runs COMMAND on the host of node N. Replaces this shell, if it is one of its own.
at_host() {
    local node=$1 way=()
    shift
    if has_network; then way=(ip netns exec "$(namespace_of "$node")"); fi
    if [ $BASH_SUBSHELL -gt 0 ]; then exec "${way[@]}" "$@"; else "${way[@]}" "$@"; fi
}

# choose_network: a number no other cluster of this machine uses, and the bridge that joins its hosts.
choose_network() {
    local number
    [ "$(id -u)" -eq 0 ] || die "--network makes network namespaces, which takes root"
    command -v ip >/dev/null && command -v nft >/dev/null || die "--network needs the packages iproute2 and nftables"
    for number in $(seq 0 255); do
        if ip link show "stratus$number" >/dev/null 2>&1; then continue; fi
        ip netns add "stratus-$number" 2>/dev/null || continue
        echo "$number" >"$(network_file)"
        begin_bridge
        return 0
    done
    die "no network namespace could be made: $(ip netns add stratus-try 2>&1)"
}

# The bridge has a namespace of its own: what this machine forwards, or does not (Docker drops by default), is none
# of its business. Whose it is stands in the alias of this machine's link to it: nodes that were killed leave theirs behind.
begin_bridge() {
    local hub
    hub=$(hub_name)
    ip -n "$hub" link add bridge type bridge
    ip -n "$hub" link set bridge up
    ip link add "$(link_name)" type veth peer name machine netns "$hub"
    ip -n "$hub" link set machine master bridge up
    ip link set "$(link_name)" alias "$directory" up
    ip address add "10.78.$(network_number).254/24" dev "$(link_name)"
}

# make_host N: a host with one address on the cluster's bridge. Made once; a machine that was restarted has none.
make_host() {
    local node=$1 space
    space=$(namespace_of "$node")
    if ip netns add "$(hub_name)" 2>/dev/null; then
        begin_bridge
    elif [ "$(ip link show "$(link_name)" 2>/dev/null | sed -n 's/^ *alias //p')" != "$directory" ]; then
        die "the network $(hub_name) belongs to another cluster: stop that one first"
    fi
    [ -e "/run/netns/$space" ] && return 0
    ip netns add "$space"
    ip -n "$(hub_name)" link add "node-$(name_of "$node")" type veth peer name eth0 netns "$space"
    ip -n "$(hub_name)" link set "node-$(name_of "$node")" master bridge up
    ip -n "$space" link set lo up
    ip -n "$space" address add "$(host_of "$node")/24" dev eth0
    ip -n "$space" link set eth0 up
    ip netns exec "$space" nft -f - <<'END'
table inet stratus {
    set deaf { type ipv4_addr; }
    chain input {
        type filter hook input priority 0; policy accept;
        ip saddr @deaf drop
    }
}
END
}

remove_hosts() {
    local node
    has_network || return 0
    # A namespace takes its time to go, and its links with it.
    ip link delete "$(link_name)" 2>/dev/null || true
    for node in $(seq "$(known_count)"); do
        ip -n "$(hub_name)" link delete "node-$(name_of "$node")" 2>/dev/null || true
        ip netns delete "$(namespace_of "$node")" 2>/dev/null || true
    done
    ip netns delete "$(hub_name)" 2>/dev/null || true
}

# deafen N M: node M hears nothing of node N any more.
deafen() { at_host "$2" nft add element inet stratus deaf "{ $(host_of "$1") }"; }

heal_hosts() {
    local node
    for node in $(nodes); do
        [ -e "/run/netns/$(namespace_of "$node")" ] && at_host "$node" nft flush set inet stratus deaf
    done
}
