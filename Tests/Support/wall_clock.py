"""Nodes whose wall clocks can be set apart, on one machine: each runs with wall-clock.c before the C library."""
import os, shutil, struct, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def adjustable(binary, directory):
    """A program like `binary`, whose nodes go by clocks that `put` sets, made in `directory`; or None, and why not."""
    compiler = shutil.which("clang") or shutil.which("cc")
    if not compiler:
        return None, "no C compiler"
    library, program = f"{directory}/wall-clock.so", f"{directory}/stratus"
    made = subprocess.run([compiler, "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, f"{HERE}/wall-clock.c", "-ldl"],
                          capture_output=True, text=True)
    if made.returncode != 0:
        return None, f"{compiler}: {made.stderr.strip()}"
    with open(program, "w") as file:
        # Deploy/cluster says: serve --config HOME/stratus.json5
        file.write(f"""#!/bin/sh
if [ "$1" = serve ]; then
    STRATUS_WALL_CLOCK="$(dirname "$3")/clock"
    [ -e "$STRATUS_WALL_CLOCK" ] || head -c 8 /dev/zero >"$STRATUS_WALL_CLOCK"
    export STRATUS_WALL_CLOCK LD_PRELOAD="{library}"
fi
exec "{os.path.abspath(binary)}" "$@"
""")
    os.chmod(program, 0o755)
    os.symlink(os.path.join(os.path.dirname(os.path.abspath(binary)), "stratusctl"), f"{directory}/stratusctl")
    return program, None


def put(home, milliseconds):
    """From this moment on the clock of the node that lives there is so far ahead of the machine's."""
    with open(f"{home}/clock", "r+b") as file:
        file.write(struct.pack("=q", milliseconds))
