"""What a create and a save write, and the processor time of the storage thread: of a node that runs natively.

Bytes and calls are `wchar` and `syscw` of /proc/PID/io. `write_bytes` is of no use here: the file system counts whole
folios, of up to 2 MiB, for an append of some bytes.
"""
import os, re, time
from closed_loop import ask_all
from worlds import One, call, fields
from works import PatientConnection, makers

# Kind of work, connections, requests.
ROUNDS = [("create", 32, 4_000), ("create", 1, 500), ("save", 32, 4_000)]
RECORDS = 20_000
# The WAL goes to its file a while after the last request.
SETTLE = 2.5


def written(process):
    with open(f"/proc/{process.pid}/io") as file:
        known = dict(line.strip().split(": ") for line in file)
    return int(known["wchar"]), int(known["syscw"])


def processor_time(process):
    """Nanoseconds by kind of thread."""
    times = {}
    for task in os.listdir(f"/proc/{process.pid}/task"):
        path = f"/proc/{process.pid}/task/{task}/"
        try:
            with open(path + "comm") as file:
                name = re.sub(r"[-. ]?\d+$", "", file.read().strip())
            with open(path + "schedstat") as file:
                times[name] = times.get(name, 0) + int(file.read().split()[0])
        except OSError:
            pass  # It has ended.
    return times


def measure(binary, directory):
    """Bytes, calls and microseconds of threads for one request, by work and connections."""
    world = One(binary, directory, counted=False)
    process = world.node.process
    for start in range(0, RECORDS, 200):
        call("POST", f"{world.url}{world.base}/records/modify{world.tokens}", {"operations": [
            {"operationType": "create", "record": {"recordType": "Note", "fields": fields((start + n) * 7 % 1000)}}
            for n in range(200)]})
    result = {}
    make = makers(world)
    for work, connection_count, count in ROUNDS:
        connections = [PatientConnection(world.port) for _ in range(connection_count)]
        ask_all(connections, make[work], 200)
        time.sleep(SETTLE)
        (bytes_, calls), times = written(process), processor_time(process)
        ask_all(connections, make[work], count)
        time.sleep(SETTLE)
        (bytes_after, calls_after), times_after = written(process), processor_time(process)
        spent = {name: (value - times.get(name, 0)) / count / 1_000 for name, value in times_after.items()}
        result[f"{work}, {connection_count}"] = {
            "bytes": (bytes_after - bytes_) / count, "calls": (calls_after - calls) / count, "µs": spent}
        for connection in connections:
            connection.socket.close()
    return result
