"""What is known to be beyond the bounds today, in `excesses.txt`: a list that may only shrink."""
import os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "excesses.txt")
HEAD = """# What attacks are known to do beyond the bounds of Tests/Stages/74-tenants. The list may only shrink.
#
# A line: nodes | attack | what | how much it was when the line was written.
#
# `piece THREAD: WORK`  milliseconds of the processor that one piece took. The bound is 20, and 40 for bulk work. The same
#                       work differs from run to run, and twofold from machine to machine: beyond five times its bound it
#                       must stand here, and three times as much as its line is too much. A line of four times the bound
#                       must go once the piece keeps within it. What lies between is noted.
# `backlog`             seconds until nodes were idle after the attack had ended; 10 are allowed.
# `backlog after kill -9`  the same after a kill and a start.
# `refused KIND`        refusals that the honest client of another container got; two, or one in fifty, are allowed.
# `stuck THREAD`        the node's own log called the thread stuck.
# `not ready`           a node said that it was not ready.
# `memory`              MiB more than before the attack; 256 are allowed.
# `answers`             the attack itself was answered with something that no page promises.
"""
PIECE_MAX, BULK_MAX = 20, 40
BULK = ("sealing", "passwords", "packs", "checkpoints")
# What these threads write, and when, depends on how fast the disk is.
UNSTEADY = ("log", "checkpoints")


def thread(what):
    return what.removeprefix("piece ").split(":")[0]


def bound(what):
    """Milliseconds of a piece."""
    return BULK_MAX if thread(what) in BULK else PIECE_MAX


def is_steady(what, known):
    """Whether it is seen in every run. The rest depends on how busy the machine is."""
    return what == "answers" or (what.startswith("piece ") and known >= 4 * bound(what) and thread(what) not in UNSTEADY)


class Excesses:
    def __init__(self, path=PATH):
        self.path, self.lines = path, {}
        if os.path.exists(path):
            with open(path) as file:
                for line in file:
                    if line.strip() and not line.startswith("#"):
                        number, attack, what, today = (part.strip() for part in line.split("|"))
                        self.lines[int(number), attack, what] = int(today)

    def judge(self, number, attack, seen, is_whole):
        """Failures and remarks about an attack whose excesses were these. One that is not whole shows less than is known."""
        failures, remarks = [], []
        for what, value in sorted(seen.items()):
            known = self.lines.get((number, attack, what))
            if what.startswith("piece "):
                most = 5 * bound(what) if known is None else 3 * known + 2 * bound(what)
                if value > most:
                    failures.append(f"{what} took {value} ms, " + (f"{known} are known" if known else f"{bound(what)} are allowed"))
                elif known is None:
                    remarks.append(f"{what} took {value} ms, {bound(what)} are allowed")
            elif known is None:
                failures.append(f"{what}: {value}")
        for (nodes, name, what), known in sorted(self.lines.items()):
            if (nodes, name) != (number, attack) or what in seen:
                continue
            text = f"'{what}', known as {known}, is within the bound now: remove this line"
            (failures if is_whole and is_steady(what, known) else remarks).append(text)
        return failures, remarks

    def record(self, number, attack, seen):
        """Takes what was seen for what is known, and writes it down."""
        lines = {key: value for key, value in Excesses(self.path).lines.items() if key[:2] != (number, attack)}
        for what, value in seen.items():
            if not what.startswith("piece ") or value > 2 * bound(what):
                lines[number, attack, what] = value
        self.lines = lines
        with open(self.path, "w") as file:
            file.write(HEAD)
            for (number, attack, what), today in sorted(lines.items()):
                file.write(f"{number} | {attack} | {what} | {today}\n")
