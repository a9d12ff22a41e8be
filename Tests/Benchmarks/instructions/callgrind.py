"""What callgrind writes: the instructions of each function, and who called whom how often at which cost."""
import re

RECURSION = re.compile(r"'\d+$")
NAME = re.compile(r"\((\d+)\)(?: (.*))?")


class Profile:
    """Instructions by function, without what it calls, and calls by caller and callee."""

    def __init__(self):
        self.costs, self.calls, self.objects = {}, {}, {}

    @property
    def total(self):
        return sum(self.costs.values())

    def add(self, other, factor=1.0):
        for function, cost in other.costs.items():
            self.costs[function] = self.costs.get(function, 0) + cost * factor
        for edge, (count, cost) in other.calls.items():
            known = self.calls.setdefault(edge, [0, 0])
            known[0] += count * factor
            known[1] += cost * factor
        self.objects.update(other.objects)

    def count(self, functions):
        """How often one of the functions is called."""
        return sum(count for (_, callee), (count, _) in self.calls.items() if callee.split("@")[0] in functions)


def read(path):
    """The profile in one file. Names stand there in full once, and by number after that."""
    functions, objects = {}, {}
    profile = Profile()
    function = callee = None
    library = callee_library = ""
    calls = None

    def named(text, table):
        match = NAME.match(text)
        if not match:
            return RECURSION.sub("", text)
        if match[2] is not None:
            table[match[1]] = RECURSION.sub("", match[2])
        return table.get(match[1], "?")

    with open(path) as file:
        for line in file:
            if line[0].isdigit() or line[0] in "+-*":
                cost = int(line.split()[1])
                if calls is None:
                    profile.costs[function] = profile.costs.get(function, 0) + cost
                    continue
                edge = profile.calls.setdefault((function, callee), [0, 0])
                edge[0] += calls
                edge[1] += cost
                calls, callee_library = None, library
            elif line.startswith("fn="):
                function = named(line[3:-1], functions)
                profile.objects.setdefault(function, library)
                callee_library = library
            elif line.startswith("cfn="):
                callee = named(line[4:-1], functions)
                profile.objects.setdefault(callee, callee_library)
            elif line.startswith("calls="):
                calls = int(line[6:].split()[0])
            elif line.startswith("ob="):
                library = callee_library = named(line[3:-1], objects)
            elif line.startswith("cob="):
                callee_library = named(line[4:-1], objects)
    return profile
