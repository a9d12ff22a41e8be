# Sourced by the scripts beside it: what they all need and nothing that decides for them.

caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# absolute PATH: a path as its caller meant it, wherever the script works.
absolute() { case "$1" in /*) printf '%s' "$1" ;; *) printf '%s/%s' "$caller" "$1" ;; esac; }

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# ensure_packages KIND...: installs what Deploy/packages lists for these kinds and is not there yet.
ensure_packages() {
    command -v dpkg-query >/dev/null || {
        say "This is not a Debian system: install what Deploy/packages lists by its names here."
        return 0
    }
    local kinds=" $* " kind name missing=()
    while read -r kind name; do
        [[ "$kind" == \#* || -z "$name" || "$kinds" != *" $kind "* ]] && continue
        dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=("$name")
    done <"$root/Deploy/packages"
    [ ${#missing[@]} -eq 0 ] && return 0
    say "Installing: ${missing[*]}"
    local sudo=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "not root and no sudo; run: apt-get install ${missing[*]}"
        sudo=(sudo)
    fi
    "${sudo[@]}" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# ensure_swift: a Swift 6.2 or later on the PATH, or a way to get one.
ensure_swift() {
    local version
    if command -v swift >/dev/null; then
        # A toolchain that was only unpacked may miss libraries of the system: what it says is the answer.
        local answer
        answer=$(swift --version 2>&1) || die "swift does not start: $answer"
        version=$(grep -oE 'Swift version [0-9]+\.[0-9]+' <<<"$answer" | grep -oE '[0-9]+\.[0-9]+' | head -1 || true)
        if [ "$(printf '6.2\n%s\n' "$version" | sort -V | head -1)" = 6.2 ]; then return 0; fi
        say "Swift ${version:-of unknown version} is too old: Stratus needs 6.2 or later."
    else
        say "Swift is not installed: Stratus needs 6.2 or later."
    fi
    say "Two ways on from here:"
    say "  1. the official installer, https://www.swift.org/install/linux/"
    say "  2. the toolchain's container image, with this checkout in it:"
    say "     docker run --rm -it -v \"$root\":/stratus -w /stratus -p 127.0.0.1:8080:8080 swift:6.3-bookworm \\"
    say "         Deploy/up --foreground --listen 0.0.0.0:8080"
    exit 69
}

# choose_release_flags: sets release_flags for what people run. It holds Swift's library itself where the toolchain has
# what that takes: less CPU than a library that is loaded, and no Swift needed where it runs. The same flags in every
# script, because other flags compile everything anew.
choose_release_flags() {
    local library
    library=$(swift -print-target-info | sed -n 's/.*"runtimeResourcePath": "\(.*\)".*/\1_static/p')
    release_flags=(-c release)
    if [ -d "$library" ]; then release_flags+=(--static-swift-stdlib); fi
}

# choose_optimised_flags: sets optimised_flags for a build of tests and programs that is optimised, in a folder of its own.
choose_optimised_flags() {
    optimised_flags=(-c release -Xswiftc -enable-testing --scratch-path "$root/.build/optimised")
    # The tests look for the planted bugs, and a stage for pieces of work that take long.
    export STRATUS_PLANTED=1 STRATUS_TURNS=1
}

# build_quietly ARGUMENTS...: swift build that shows its output only when it fails.
build_quietly() {
    local log
    log=$(mktemp)
    if ! swift build "$@" >"$log" 2>&1; then
        grep -E 'error|warning:' "$log" >&2 || tail -50 "$log" >&2
        # Compiled modules name the folder that they were made in.
        if grep -qE 'module cache path|PCH file .* was compiled|has been modified since the' "$log"; then
            say "This checkout was moved or copied with what was built in it: remove $root/.build and try again."
        fi
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}
