"""The budgets: what a request may cost in total, by stage and in writes, and how far beyond it is too far."""
import json, os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "budgets.json")
TOTAL_TOLERANCE, STAGE_TOLERANCE, WRITE_TOLERANCE = 1.05, 1.10, 1.10
# Thousands of instructions: a stage varies by so much with how many requests share a turn.
STAGE_SLACK = 2


class Budgets:
    def __init__(self):
        with open(PATH) as file:
            self.known = json.load(file)
        self.exceeded = []

    def of(self, nodes, work):
        return self.known.get(str(nodes), {}).get(work, {"total": None, "stages": {}})

    def judge(self, nodes, work, total, stages):
        """Notes what is exceeded, and what has no budget."""
        budget, name = self.of(nodes, work), f"{work} on {nodes}"
        self.compare(name, total, budget["total"], TOTAL_TOLERANCE)
        if budget["total"] is None:
            return
        for stage, value in stages.items():
            self.compare(f"{name}, {stage}", value, budget["stages"].get(stage, 0), STAGE_TOLERANCE, STAGE_SLACK)

    def judge_writes(self, work, bytes_, calls):
        budget = self.known.get("writes", {}).get(work, {})
        self.compare(f"bytes of {work}", bytes_, budget.get("bytes"), WRITE_TOLERANCE)
        self.compare(f"calls of {work}", calls, budget.get("calls"), WRITE_TOLERANCE)

    def compare(self, name, value, budget, tolerance, slack=0):
        if budget is None:
            self.exceeded.append(f"{name}: {value:.1f}, and no budget")
        elif value > budget * tolerance + slack:
            self.exceeded.append(f"{name}: {value:.1f}, budget {budget}")

    def keep(self, nodes, work, total, stages):
        self.known.setdefault(str(nodes), {})[work] = {
            "total": round(total), "stages": {stage: round(value, 1) for stage, value in stages.items() if value >= 0.05}}

    def keep_writes(self, work, bytes_, calls):
        self.known.setdefault("writes", {})[work] = {"bytes": round(bytes_), "calls": round(calls, 2)}

    def write(self):
        with open(PATH, "w") as file:
            json.dump(self.known, file, indent=2)
            file.write("\n")
