"""The fields of each kind of file in a data directory, and a flipped bit in one."""
import os

BATCH = b"SLB\x01"
# Places of the fields, as Docs/internals/data-files.md says.
SEGMENT = {"mark": 2, "sequence": 8, "salt": 17, "size": 26, "checksum": 61}
HEADER = {"mark": 1, "checksum": 5, "sequence": 8, "salt": 18, "position": 24, "number": 32, "items": 40, "payloads": 44}
ITEM = {"kind": 48, "entry kind": 49, "group": 50, "index": 56, "term": 64, "time": 72, "size": 80, "payload checksum": 85}
PAGE = {"mark": 3, "page size": 17, "count": 28, "schema": 44, "cells": 104, "content": 3_000, "checksum": 4_089, "tag": 4_093}
SMALL = {"mark": 2, "version": 8, "body": 12}


def batches(content):
    """The places of the batches of a segment."""
    found, start = [], 64
    while (start := content.find(BATCH, start)) >= 0:
        if start % 8 == 0 and int.from_bytes(content[start + 24:start + 32], "little") == start:
            found.append(start)
        start += 4
    return found


def places(data, path):
    """The fields of a file: kind and field, and the offset."""
    with open(os.path.join(data, path), "rb") as file:
        content = file.read()
    if not content.strip(b"\0"):
        return
    if path.endswith(".seg"):
        yield from ((f"segment {field}", offset) for field, offset in SEGMENT.items())
        all = batches(content)
        # An empty batch closes the log of a process that ended.
        if all and not any(content[all[-1] + 40:all[-1] + 44]):
            closing = all.pop()
            yield from ((f"closing batch {field}", closing + offset) for field, offset in HEADER.items())
        for where, start in [("first", all[0]), ("middle", all[len(all) // 2]), ("last", all[-1])] if all else []:
            yield from ((f"{where} batch {field}", start + offset) for field, offset in {**HEADER, **ITEM}.items())
            count = int.from_bytes(content[start + 40:start + 44], "little")
            yield f"{where} batch payload", start + 48 + 40 * count + 5
    elif path.endswith(".db"):
        for page in sorted({0, len(content) // 8_192, len(content) // 4_096 - 1}):
            yield from ((f"rows page {field}", page * 4_096 + offset) for field, offset in PAGE.items())
    elif path.endswith("-wal"):
        yield from (("wal", offset) for offset in (1, 20, 30, len(content) // 2) if offset < len(content))
    else:
        for field, offset in {**SMALL, "checksum": len(content) - 2}.items():
            if 0 <= offset < len(content):
                yield f"{os.path.basename(path)} {field}", offset


def sealed_places(data, path):
    """Places of a sealed file, whose fields nobody sees: its header, and its content."""
    size = os.path.getsize(os.path.join(data, path))
    wanted = {"header": 3, "header's key": 60, "second header": 2_060, "first block": 4_100, "middle": size // 2, "last byte": size - 1}
    with open(os.path.join(data, path), "rb") as file:
        content = file.read()
    for field, offset in wanted.items():
        if 0 <= offset < size and any(content[max(0, offset - 64):offset + 64]):
            yield f"{kind(path)} {field}", offset


def kind(path):
    """What a file is, whatever its number."""
    name = os.path.basename(path)
    for ending in (".seg", "-wal", ".db", ".pack"):
        if name.endswith(ending):
            return {"-wal": "wal", ".db": "index" if name == "index.db" else "rows"}.get(ending, ending[1:])
    return name


def flip(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 4]))
