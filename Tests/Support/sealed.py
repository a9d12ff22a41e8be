"""What the files of a data directory show, and which keys seal them."""
import os

HEADER = 4_096


def files(data):
    return [os.path.join(folder, name) for folder, _, names in os.walk(data) for name in names]


def content(path, count=-1):
    """Of a file that a node may remove meanwhile."""
    try:
        with open(path, "rb") as file:
            return file.read(count)
    except FileNotFoundError:
        return b""


def found(data, texts):
    """The files that hold a planted text, by the text."""
    places = {}
    for path in files(data):
        shown = content(path)
        for text in texts:
            if text in shown:
                places.setdefault(text.decode(), []).append(os.path.relpath(path, data))
    return places


def versions(data):
    """How many sealed files have their key under which master keys, by the newer of their slots."""
    count = {}
    for path in files(data):
        header = content(path, HEADER)
        slots = [header[place:place + 97] for place in (0, 2_048) if header[place:place + 8] == b"STRATUSF"]
        for version in {int.from_bytes(slot[17:21], "little") for slot in slots}:
            count[version] = count.get(version, 0) + 1
    return count


def key(work, name):
    path = os.path.join(work, name)
    with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(os.urandom(32).hex() + "\n")
    return path
