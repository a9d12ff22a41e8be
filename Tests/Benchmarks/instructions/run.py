#!/usr/bin/env python3
"""Instructions of a request, in total and by stage, and what a create writes: the figures that judge the request path.

    apt-get install valgrind
    swift build -c release --static-swift-stdlib --product stratus
    Tests/Benchmarks/instructions/run.py [--nodes 1|3|both] [--work lookup,save,…] [--runs 3] [--requests 600]
    Tests/Benchmarks/instructions/run.py --writes      # bytes and calls written instead, without callgrind
    Tests/Benchmarks/instructions/run.py --zone-buckets 16 --work sync,first-sync     # on one node, without budgets
    Tests/Benchmarks/instructions/run.py --check       # ends with 1 if a budget is exceeded
    Tests/Benchmarks/instructions/run.py --write       # makes what was measured the budgets

Instructions of user code do not depend on what else the machine does, but for how many requests share a turn of a
loop. Thirty-two connections ask at once, after 300 requests to warm up. What the node does by itself in the same time
is counted too, and taken off. With three nodes, requests go to one that does not lead; all nodes are added up.

What libcrypto takes is shown, but no part of the figures: valgrind hides the processor's SHA and AES instructions, so it
is many times what it is in truth. A total may exceed its budget by 5 %, a stage by 10 % and two thousand, bytes and
calls by 10 %. Times are not judged.

`stages.py` sorts functions into stages, `works.py` has the requests, `worlds.py` the nodes, `writes.py` the writes.
STRATUS_BINARY names another program. Every process started here is ended here.
"""
import argparse, os, shutil, statistics, sys, tempfile, time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Support"))
import stages, stratus, writes
from budgets import Budgets
from callgrind import Profile
from closed_loop import ask_all
from works import KINDS, PatientConnection, makers
from worlds import Node, One, Three

CONNECTIONS, WARM_UP = 32, 300
ALLOCATIONS = {"malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"}
RETAINS = {"swift_retain", "swift_retain_n", "swift_bridgeObjectRetain", "swift_bridgeObjectRetain_n", "swift_unknownObjectRetain"}


class Figures:
    """What one request of a kind costs, in thousands of instructions."""

    def __init__(self, threads):
        profile = Profile()
        for thread in threads.values():
            profile.add(thread)
        found, cryptography = stages.split(profile)
        self.stages = {name: value / 1_000 for name, value in found.items()}
        self.cryptography = cryptography / 1_000
        self.total = sum(self.stages.values())
        self.threads = {name: thread.total / 1_000 for name, thread in threads.items()}
        self.allocations, self.retains = profile.count(ALLOCATIONS), profile.count(RETAINS)


def gather(nodes):
    threads = {}
    for node in nodes:
        for name, profile in node.take().items():
            threads.setdefault(name, Profile()).add(profile)
    return threads


def measure(world, works, count):
    """Figures by kind of work."""
    make = makers(world)
    connections = [PatientConnection(world.port) for _ in range(CONNECTIONS)]
    result = {}
    for work in works:
        number = max(CONNECTIONS, count // 10) if work in ("batch", "first-sync") else count
        ask_all(connections, make[work], min(WARM_UP, number))
        world.settle()
        PatientConnection.refused = 0
        result[work] = figures = one_kind(world.nodes, lambda: ask_all(connections, make[work], number), number)
        print(f"  {work:11} {figures.total:8.0f}   {number} requests, {PatientConnection.refused} refused, "
              f"load {os.getloadavg()[0]:.0f}", flush=True)
    for connection in connections:
        connection.socket.close()
    return result


def one_kind(nodes, ask, number):
    def timed(act):
        for node in nodes:
            node.zero()
        began = time.time()
        act()
        return time.time() - began

    idle_seconds = timed(lambda: time.sleep(3))
    idle = gather(nodes)
    seconds = timed(ask)
    threads = {}
    for name, profile in gather(nodes).items():
        threads[name] = Profile()
        threads[name].add(profile, 1 / number)
        if name in idle:
            threads[name].add(idle[name], -seconds / idle_seconds / number)
    return Figures(threads)


def count_nodes(nodes, works, arguments, binary):
    """Figures of each run, by kind of work."""
    runs = []
    for run in range(arguments.runs):
        print(f"{nodes} node(s), run {run + 1} of {arguments.runs}, thousands of instructions a request", flush=True)
        runs.append(in_directory(lambda directory: measure(
            One(binary, directory, arguments.zone_buckets) if nodes == 1 else Three(binary, directory), works,
            arguments.requests)))
    return runs


def in_directory(act):
    directory = tempfile.mkdtemp(prefix="stratus-instructions-")
    try:
        return act(directory)
    finally:
        # Those too that were still being filled when something failed.
        for node in list(Node.running):
            node.stop()
        shutil.rmtree(directory, ignore_errors=True)


def report(nodes, works, runs, budgets, arguments):
    print(f"\n| {nodes} node(s) | median | lowest to highest | budget | allocations | retains | libcrypto, left out "
          "| by thread, with libcrypto |\n" + "| --- " * 8 + "|")
    medians = {}
    for work in works:
        ordered = sorted((run[work] for run in runs), key=lambda figures: figures.total)
        median = medians[work] = ordered[(len(ordered) - 1) // 2]
        threads = sorted(((value, name) for name, value in median.threads.items() if value >= 0.1), reverse=True)[:6]
        known = None if arguments.zone_buckets else budgets.of(nodes, work)["total"]
        print(f"| {work} | {median.total:.0f} | {ordered[0].total:.0f} to {ordered[-1].total:.0f} | {known or ''} "
              f"| {median.allocations:.0f} | {median.retains:.0f} | {median.cryptography:.0f} | "
              + ", ".join(f"{name} {value:.0f}" for value, name in threads) + " |")
        if not arguments.zone_buckets:
            budgets.judge(nodes, work, median.total, median.stages)
        if arguments.write:
            budgets.keep(nodes, work, median.total, median.stages)
    print(f"\n| stage, {nodes} node(s) | " + " | ".join(works) + " |\n| --- " + "| --- " * len(works) + "|")
    for stage in stages.STAGES:
        values = [medians[work].stages[stage] for work in works]
        print(f"| {stage} | " + " | ".join(f"{value:.1f}" if value >= 0.05 else "" for value in values) + " |")
    print()


def report_writes(runs, budgets, arguments):
    print("\n| writes of one request, connections | bytes | calls | µs of the processor by thread |\n| --- | --- | --- | --- |")
    for work in runs[0]:
        bytes_ = statistics.median_low([run[work]["bytes"] for run in runs])
        calls = statistics.median_low([run[work]["calls"] for run in runs])
        spent = {name: statistics.median_low([run[work]["µs"].get(name, 0) for run in runs]) for name in runs[0][work]["µs"]}
        threads = sorted(((value, name) for name, value in spent.items() if value >= 0.5), reverse=True)
        print(f"| {work} | {bytes_:.0f} | {calls:.2f} | " + ", ".join(f"{name} {value:.0f}" for value, name in threads) + " |")
        budgets.judge_writes(work, bytes_, calls)
        if arguments.write:
            budgets.keep_writes(work, bytes_, calls)
    print()


def read_arguments():
    parser = argparse.ArgumentParser(description="Counts the instructions of requests under callgrind, by stage.")
    parser.add_argument("--nodes", choices=["1", "3", "both"], default="1")
    parser.add_argument("--work", help="kinds of work, separated by commas; all of them if left out")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--writes", action="store_true", help="count bytes and calls written instead")
    parser.add_argument("--zone-buckets", type=int, default=0, help="place private databases zone by zone; without budgets")
    parser.add_argument("--check", action="store_true", help="end with 1 if a budget is exceeded")
    parser.add_argument("--write", action="store_true", help="make the medians the budgets")
    arguments = parser.parse_args()
    if not 1 <= arguments.runs <= 10 or not CONNECTIONS <= arguments.requests <= 10_000:
        parser.error(f"1 to 10 runs of {CONNECTIONS} to 10,000 requests")
    if arguments.zone_buckets and (arguments.write or arguments.check or arguments.writes or arguments.nodes != "1"):
        parser.error("--zone-buckets is for one node, and has no budgets")
    for tool, package in [("valgrind", "valgrind"), ("callgrind_control", "valgrind"), ("swift-demangle", "Swift's toolchain")]:
        if not arguments.writes and not shutil.which(tool):
            raise SystemExit(f"{tool} is missing; it comes with {package}")
    return arguments


def main():
    arguments = read_arguments()
    binary = os.environ.get("STRATUS_BINARY", os.path.join(stratus.RELEASE, "stratus"))
    budgets = Budgets()
    if arguments.writes:
        runs = [in_directory(lambda directory: writes.measure(binary, directory)) for _ in range(arguments.runs)]
        report_writes(runs, budgets, arguments)
    else:
        for nodes in [1, 3] if arguments.nodes == "both" else [int(arguments.nodes)]:
            works = [w for w in KINDS[nodes] if not arguments.work or w in arguments.work.split(",")]
            report(nodes, works, count_nodes(nodes, works, arguments, binary), budgets, arguments)
    if arguments.write:
        budgets.write()
        return
    for line in budgets.exceeded:
        print("over its budget:", line)
    sys.exit(1 if arguments.check and budgets.exceeded else 0)


if __name__ == "__main__":
    main()
