#!/usr/bin/env python3
"""A model of how bodies of assets are stored, named and let go: can a named body be without its bytes?

Four nodes, one group, three voters. Raft is abstract: one log that a new leader cuts back to its own, quorums of
every voter set, an entry in force as a configuration once it is in the log, a leader that is no voter any more
leading until that is committed. A node has a log (ack), rows (applied), rows on disk (durable), copies with their
orphanAfter, and a replica that is there, half removed, or not. A body has two chunks; two bodies out of four are
the same file. Schedules are random and deep; one that breaks an invariant is cut down to the shortest that does.

  H  each body that committed rows name is whole on disk at a majority of each voter set that may decide: the old
     voters; the incoming ones for what was pinned in the joint configuration; all once the last is in a log
  N  no copy that a node's durable rows name is removed by that node
  L  a named body can be read from live members while at most one node is down or one copy is lost
  S  the body that a pin is answered with is named when the pin is applied
  U  a body is called lost only when a chunk of it is on no member's disk
  F  a body that is called lost no more is whole, but for rot, at a majority of each voter set that decides on it

H and L hold for one fault of a disk. A schedule that begins with `disaster` has four, and is held to N, S, U and F.

  asset-pins.py [--runs N] [--steps N] [--seed N] [RULE ...]
Without RULE: the design first, which must hold, then with each rule broken, which must be found."""
import argparse, random, sys
from types import SimpleNamespace

NODES, LIFE, CHUNKS = (0, 1, 2, 3), 3, (0, 1)   # a body's orphanAfter is so many ticks away
BREAKS = {  # rule broken: what is wrong then
    "pinUnasked": "a pin is appended whoever stored",
    "pinOneSet": "in a joint configuration a pin asks the old voters only",
    "noMemberSince": "a storer counts whenever it stored",
    "sinceAfterAt": "member since looks at configurations behind the index only, not at the one in force there",
    "gateMissing": "a joint configuration is left as soon as it is committed",
    "heldAtApply": "held is said through what is applied, copies or not",
    "removalAtApply": "copies go when the drop is applied, not when it is durable",
    "orphanAtApply": "orphans are judged by rows that are not durable",
    "orphanOwnClock": "orphans are judged by the node's clock",
    "fetchedAgeless": "a fetched copy has no orphanAfter (0)",
    "latePinTaken": "a pin behind its body's orphanAfter is taken",
    "pinTwice": "a pin that comes a second time under its identity is taken again",
    "remadeEarly": "a replica is made anew while the packs of the one before are still to go",
    "someChunks": "a storer counts that has one chunk of the body",
    "lastIndex": "a storer is named with the last of its indexes, not with the least",
    "replaceUnasked": "a body takes another's place whoever stored it",
    "replaceOfGone": "a body takes the place of one that is gone",
    "shareKept": "a body that was dropped is still shared with equal files",
    "lostByMajority": "a body is called lost when a majority of the members lack a chunk",
    "findUnasked": "a lost body is found whoever has its copies",
    "findNoMemberSince": "who has a found body counts whenever it said so",
    "lostSwept": "copies of a lost body that come later are orphans",
    "lateFindTaken": "a body is found although its copies' orphanAfter is over (harmless: its row names them meanwhile)",
    "heldKept": "a new leader keeps what was said to the old one (harmless: the index speaks of committed entries)",
}
HARMLESS = {"heldKept", "replaceOfGone", "lateFindTaken"}

class Broken(Exception): pass
class Cannot(Exception): pass
def need(holds):
    if not holds:
        raise Cannot
def entry_of(kind, time, **more):
    return SimpleNamespace(kind=kind, time=time, **more)

class Model:
    def __init__(self, broken):
        self.broken, self.now = broken, 1
        first = (frozenset((0, 1, 2)), frozenset(), frozenset())       # voters, incoming, learners
        self.log = [None, entry_of("config", 1, config=first)]
        self.rows = [({}, frozenset(), {})] * 2      # of committed indexes: body -> pin, seen, file -> body
        self.commit, self.base, self.term_start, self.leader = 1, 0, 1, 0
        self.up = [True] * 4
        self.ack, self.applied, self.durable = ([1, 1, 1, 0] for _ in range(3))
        self.replica = ["here", "here", "here", "none"]
        self.copies = [{} for _ in NODES]                              # (body, chunk) -> orphanAfter
        self.faults, self.rotten, self.disaster = 1, frozenset(), False   # (node, body, chunk): copies that are lost
        self.bodies = {}                                 # body -> [orphanAfter, {node: {chunk: at}}, pins said]
        self.held, self.ends, self.lost = {}, {}, set()   # body -> index of the committed drop
        self.brought, self.answers = {}, {}    # of lost bodies: orphanAfter of copies from other disks; {node: at} of who has all
    # -- configurations
    def config_at(self, index):
        while self.log[index].kind != "config":
            index -= 1
        return index, self.log[index].config
    @property
    def config(self): return self.config_at(len(self.log) - 1)
    def members(self, config): return config[0] | config[1] | config[2]
    def majority(self, nodes, voters): return not voters or len(voters & nodes) * 2 > len(voters)
    def quorum(self, nodes, config):
        return self.majority(nodes, config[0]) and self.majority(nodes, config[1])
    def member_since(self, node, at):
        """By the leader's log, which reaches back to `base`."""
        if "noMemberSince" in self.broken or self.config[0] <= at:
            return True
        if at < max(self.base, 1):
            return False
        configs = [e.config for e in self.log[at + 1:] if e.kind == "config"]
        configs += [] if "sinceAfterAt" in self.broken else [self.config_at(at)[1]]
        return all(node in self.members(c) for c in configs)
    # -- entries
    def append(self, kind, **more):
        self.log.append(entry_of(kind, max(self.log[-1].time, self.now), **more))
        self.ack[self.leader] = len(self.log) - 1
    def advance(self):
        """The leader's commit, and what follows from it."""
        _, config = self.config
        behind = range(max(self.commit + 1, self.term_start), len(self.log))
        held_by = {i: frozenset(n for n in NODES if self.ack[n] >= i) for i in behind}
        reached = max((i for i in behind if self.quorum(held_by[i], config)), default=0)
        while self.commit < reached:
            self.commit += 1
            entry, (named, seen, shares) = self.log[self.commit], self.rows[-1]
            if entry.kind in ("pin", "replace"):
                late = entry.time > entry.after and "latePinTaken" not in self.broken
                again = entry.body in named or entry.body in seen and "pinTwice" not in self.broken
                seen, file = seen | {entry.body}, entry.body % 2
                gone = entry.kind == "replace" and entry.old not in named and "replaceOfGone" not in self.broken
                if entry.kind == "pin" and file in shares and not late and not again:
                    if shares[file] not in named:
                        raise Broken(f"S: the pin of body {entry.body} is answered with {shares[file]}, which is gone")
                elif not (late or again or gone):
                    named = {**named, entry.body: self.commit}
                    if entry.kind == "replace" and entry.old in named:
                        named = {b: i for b, i in named.items() if b != entry.old}
                        self.ends[entry.old] = self.commit
                        shares = {f: b for f, b in shares.items() if b != entry.old}
                    shares = {**shares, file: entry.body}
            elif entry.kind == "drop" and entry.body in named:
                named = {b: i for b, i in named.items() if b != entry.body}
                self.ends[entry.body] = self.commit
                if "shareKept" not in self.broken:
                    shares = {f: b for f, b in shares.items() if b != entry.body}
            elif entry.kind == "lose" and entry.body in named:
                self.lost.add(entry.body)
            elif entry.kind == "find" and entry.body in named and entry.body in self.lost:
                if entry.time <= entry.after or "lateFindTaken" in self.broken:
                    self.lost.discard(entry.body)
                    named = {**named, entry.body: self.commit}
                    self.check_found(entry.body)
            self.rows.append((named, seen, shares))
        at, config = self.config
        if at <= self.commit and self.leader not in config[0] | config[1]:
            self.leader = None                                         # no voter any more, and that is committed
    def through(self, node):
        named = self.rows[self.applied[node]][0]
        missing = [i for b, i in named.items() if b not in self.lost and not self.whole(node, b)]
        return self.applied[node] if "heldAtApply" in self.broken or not missing else min(missing) - 1
    def whole(self, node, body): return all((body, c) in self.copies[node] for c in CHUNKS)
    def sound(self, node, body, chunk):
        return (body, chunk) in self.copies[node] and (node, body, chunk) not in self.rotten
    def remove(self, node, body, chunk):
        if body in self.rows[self.durable[node]][0]:
            raise Broken(f"N: node {node} removes body {body}, which its durable rows name")
        del self.copies[node][body, chunk]
        self.mended(node, body, chunk)
    def mended(self, node, body, chunk): self.rotten -= {(node, body, chunk)}
    def storers(self, body):
        """Who counts for a pin, by the leader's log."""
        config, counted = self.config[1], set()
        for node, chunks in self.bodies[body][1].items():
            if not chunks:
                continue
            at = max(chunks.values()) if "lastIndex" in self.broken else min(chunks.values())
            if (len(chunks) == len(CHUNKS) or "someChunks" in self.broken) and self.member_since(node, at):
                counted.add(node)
        return frozenset(counted)
    # -- what can happen; `need` ends what cannot
    def do_disaster(self, a, b, c):
        need(self.now == 1 and len(self.log) == 2 and not self.bodies)
        self.disaster, self.faults = True, 4
    def do_tick(self, a, b, c): self.now += 1
    def do_body(self, a, b, c):
        need(len(self.bodies) < 4)
        self.bodies[len(self.bodies)] = [max(self.now, self.log[-1].time) + LIFE, {}, 0]
    def do_put(self, n, body, c):                       # a put, or a confirm where the copy is there
        need(body in self.bodies and self.up[n] and self.replica[n] == "here")
        c %= 2
        if (body, c) not in self.copies[n]:
            need(not self.bodies[body][2])           # once the pin was said: confirm only
            self.copies[n][body, c] = self.bodies[body][0]
            self.mended(n, body, c)
        chunks = self.bodies[body][1].setdefault(n, {})
        # A confirm says an index for all chunks, and only where all are there.
        if self.whole(n, body) and self.bodies[body][2]:
            self.bodies[body][1][n] = {x: self.applied[n] for x in CHUNKS}
        elif not self.bodies[body][2]:
            chunks[c] = self.applied[n]
        else:
            need(False)
    def do_pin(self, n, body, c):                       # or the same once more, where the outcome is not known
        need(self.leader is not None and body in self.bodies and self.bodies[body][2] < 3)
        after, storers, _ = self.bodies[body]
        _, config = self.config
        counted = self.storers(body)
        asked = (config[0], frozenset(), frozenset()) if "pinOneSet" in self.broken else config
        need(storers and (self.quorum(counted, asked) or "pinUnasked" in self.broken))
        self.bodies[body][2] += 1
        self.append("pin", body=body, after=after)
    def do_replace(self, old, body, c):              # the same asset, sealed anew
        need(self.leader is not None and body in self.bodies and not self.bodies[body][2] and old != body)
        need(old in self.rows[self.applied[self.leader]][0] and self.bodies[body][1])
        need(self.quorum(self.storers(body), self.config[1]) or "replaceUnasked" in self.broken)
        self.bodies[body][2] = 3
        self.append("replace", body=body, old=old, after=self.bodies[body][0])
    def do_lose(self, chunk, body, c):               # every member says that it lacks a chunk, and fetches it nowhere
        chunk %= 2
        need(self.leader is not None and body in self.rows[self.applied[self.leader]][0] and body not in self.lost)
        members, pin = self.members(self.config[1]), self.rows[self.applied[self.leader]][0][body]
        lacking = frozenset(n for n in members if self.up[n] and self.applied[n] >= pin and self.replica[n] == "here"
                            and (body, chunk) not in self.copies[n])
        enough = len(lacking) * 2 > len(members) if "lostByMajority" in self.broken else lacking == members
        need(enough)
        if any(self.sound(n, body, chunk) for n in members):
            raise Broken(f"U: body {body} is called lost, and a member has chunk {chunk}")
        self.append("lose", body=body)
    def do_bring(self, n, body, c):                  # a copy of a lost body, from a disk that is none of these
        c %= 2
        need(body in self.lost and self.up[n] and self.replica[n] == "here" and (body, c) not in self.copies[n])
        self.brought[body] = self.copies[n][body, c] = max(self.now, self.log[-1].time) + LIFE
        self.mended(n, body, c)
    def do_ask(self, n, body, c):
        need(body in self.lost and body in self.brought and self.up[n] and self.replica[n] == "here" and self.whole(n, body))
        self.answers.setdefault(body, {})[n] = self.applied[n]
    def do_find(self, n, body, c):
        need(self.leader is not None and body in self.answers and body in self.rows[self.applied[self.leader]][0])
        kept = "findNoMemberSince" in self.broken
        counted = frozenset(n for n, at in self.answers[body].items() if kept or self.member_since(n, at))
        need(self.quorum(counted, self.config[1]) or "findUnasked" in self.broken)
        self.append("find", body=body, after=self.brought[body])
    def do_drop(self, n, body, c):
        need(self.leader is not None and body in self.rows[self.applied[self.leader]][0])
        self.append("drop", body=body)
    def do_replicate(self, n, b, c):
        need(self.leader not in (None, n) and self.up[n] and n in self.members(self.config[1]))
        if self.replica[n] != "here":
            need(self.replica[n] != "going" or "remadeEarly" in self.broken)
            self.replica[n] = "here" if self.replica[n] == "none" else "both"
        last, leader = len(self.log) - 1, self.applied[self.leader]
        if self.ack[n] < self.base or b == 3 and self.ack[n] < leader:
            self.ack[n] = self.applied[n] = self.durable[n] = leader   # a snapshot: all rows at once
        else:
            self.ack[n] = last if b else min(self.ack[n] + 1, last)
        self.advance()
    def do_apply(self, n, b, c):
        need(self.up[n] and self.applied[n] < min(self.ack[n], self.commit))
        self.applied[n] = min(self.ack[n], self.commit) if b else self.applied[n] + 1
    def do_sync(self, n, b, c): self.durable[n] = self.applied[n]
    def do_crash(self, n, b, c):
        need(all(self.up))
        self.up[n], self.applied[n] = False, self.durable[n]
        self.leader = None if self.leader == n else self.leader
    def do_start(self, n, b, c):
        need(not self.up[n])
        self.up[n] = True
    def do_elect(self, n, b, c):
        need(n != self.leader and self.up[n] and self.replica[n] in ("here", "both"))
        need(self.ack[n] >= self.commit)
        _, config = self.config_at(self.ack[n])
        voices = frozenset(m for m in NODES if self.up[m] and self.ack[m] <= self.ack[n])
        need(n in config[0] | config[1] and self.quorum(voices, config))
        del self.log[self.ack[n] + 1:]
        self.ack = [min(x, self.ack[n]) for x in self.ack]
        self.leader, self.term_start = n, len(self.log)
        self.held = self.held if "heldKept" in self.broken else {}
        self.append("none")
    def do_compact(self, n, b, c):
        need(self.leader is not None)
        self.base = max(self.base, self.applied[self.leader])
    def do_change(self, a, b, c):                       # learners alone: one step; else all but `a` are to vote
        at, config = self.config
        need(self.leader is not None and self.term_start <= self.commit >= at and not config[1])
        voters = config[0] if b == 0 else frozenset(NODES) - {a}
        need(b == 0 or voters != config[0])
        learners = (frozenset((a,)) - config[0]) ^ config[2] if b == 0 else frozenset((a,) if b == 1 else ())
        self.append("config", config=(config[0], voters if b else frozenset(), learners))
    def do_hold(self, n, b, c):                         # heldAsk and its answer
        need(self.leader is not None and self.up[n] and self.replica[n] in ("here", "both"))
        self.held[n] = self.through(n)
    def do_leave(self, a, b, c):
        at, config = self.config
        need(self.leader is not None and config[1] and self.term_start <= self.commit >= at)
        whole = frozenset(n for n, i in self.held.items() if i >= at)
        need(self.majority(whole, config[1]) or "gateMissing" in self.broken)
        self.append("config", config=(config[1], frozenset(), config[2]))
    def do_retire(self, n, b, c):                       # rows first, packs in a step of their own
        if self.replica[n] in ("going", "both"):
            self.replica[n] = "none" if self.replica[n] == "going" else "here"
            self.copies[n] = {}
            self.rotten = frozenset(r for r in self.rotten if r[0] != n)
            return
        at, config = self.config
        need(self.replica[n] == "here" and self.up[n] and n != self.leader)
        need(at <= self.commit and n not in self.members(config))
        self.replica[n] = "going"
        self.ack[n] = self.applied[n] = self.durable[n] = 0
    def do_remove(self, n, body, c):                 # what was let go
        need(self.up[n] and (body, c % 2) in self.copies[n] and body in self.ends)
        reached = self.applied[n] if "removalAtApply" in self.broken else self.durable[n]
        need(reached >= self.ends[body])
        self.remove(n, body, c % 2)
    def do_sweep(self, n, body, c):                  # what nobody names
        need(self.up[n] and (body, c % 2) in self.copies[n] and self.replica[n] == "here")
        index = self.applied[n] if self.broken & {"orphanAtApply", "orphanOwnClock"} else self.durable[n]
        time = self.now + n if "orphanOwnClock" in self.broken else self.log[index].time if index else 0
        unnamed = body not in self.rows[index][0] and body not in self.rows[self.applied[n]][0]
        need(unnamed or "lostSwept" in self.broken and body in self.lost)
        need(time > self.copies[n][body, c % 2])
        self.remove(n, body, c % 2)
    def do_fetch(self, n, body, c):
        c %= 2
        need(self.up[n] and (body, c) not in self.copies[n] and body in self.rows[self.applied[n]][0])
        need(any(self.up[m] and self.sound(m, body, c) for m in NODES))
        self.copies[n][body, c] = 0 if "fetchedAgeless" in self.broken else self.log[self.applied[n]].time
        self.mended(n, body, c)
    def do_rot(self, n, body, c):
        need(self.faults and (body, c % 2) in self.copies[n])
        self.faults, self.rotten = self.faults - 1, self.rotten | {(n, body, c % 2)}
    def do_notice(self, n, body, c):                 # missing from then on, and struck until it is mended
        need((n, body, c % 2) in self.rotten and (body, c % 2) in self.copies[n])
        del self.copies[n][body, c % 2]
    # -- what must hold
    def check_found(self, body):
        holders = frozenset(n for n in NODES if all((body, c) in self.copies[n] or (n, body, c) in self.rotten for c in CHUNKS))
        _, config = self.config_at(self.commit)
        if not self.quorum(holders, config):
            raise Broken(f"F: body {body} is found, and is on {sorted(holders)} only")
    def check(self):
        if self.disaster:
            return
        first, config = self.config_at(self.commit)
        configs = [(i, self.log[i].config) for i in range(first, len(self.log)) if self.log[i].kind == "config"]
        for body, pin in self.rows[self.commit][0].items():
            whole = frozenset(n for n in NODES if all(self.sound(n, body, c) for c in CHUNKS))
            struck = frozenset(n for n in NODES if any(r[:2] == (n, body) for r in self.rotten))
            for at, (voters, incoming, _) in configs:
                sets = [voters] + ([incoming] if pin > at else [])
                if not all(self.majority(whole | struck, s) for s in sets):
                    raise Broken(f"H: body {body}, pinned at {pin}, is on {sorted(whole)} only; {sets}")
            asked = self.members(self.config[1]) | self.members(config)
            live = [n for n in asked if self.up[n]]
            if self.up.count(False) + len(struck) <= 1 and not all(any(self.sound(n, body, c) for n in live) for c in CHUNKS):
                raise Broken(f"L: body {body} cannot be read")

WEIGHTS = {"tick": 2, "body": 2, "put": 24, "pin": 6, "drop": 3, "replicate": 22, "apply": 16, "sync": 5,
           "crash": 3, "start": 4, "elect": 3, "compact": 1, "change": 6, "hold": 8, "leave": 5, "retire": 6,
           "remove": 5, "sweep": 5, "fetch": 14, "rot": 2, "notice": 3, "replace": 3, "lose": 2,
           "bring": 4, "ask": 4, "find": 2}
LOST = ("disaster, body 0, put 0 0 0, put 1 0 0, put 0 0 1, put 1 0 1, pin 0 0, replicate 1 1, replicate 2 1, apply 0 1, apply 1 1, "
        "apply 2 1, rot 0 0 0, rot 1 0 0, notice 0 0 0, notice 1 0 0, lose 0 0, replicate 1 1, replicate 2 1, apply 0 1, ")
FOUND = {"bring", "ask", "find"}   # only where bodies can be lost
RARE = (   # tried first: chance takes long to find them
    "body 0 0, put 0 0, put 1 0, put 0 0 1, put 1 0 1, pin 0 0, change 0 2, replicate 1 1, replicate 2 1, apply 1 1, apply 2 1, fetch 2 0, fetch 2 0 1, "
    "hold 1 0, hold 2 0, leave 0 0, crash 2 0, start 2 0, sweep 2 0",
    "body 0, body 0, body 0, put 0 0 0, put 1 0 0, put 0 0 1, put 1 0 1, put 0 2 0, put 1 2 0, put 0 2 1, put 1 2 1, pin 0 0, "
    "replicate 1 1, apply 0 1, drop 0 0, replicate 1 1, pin 0 2, replicate 1 1",
    "body 0, put 1 0 0, change 1 2, replicate 2 1, replicate 3 1, replicate 1 1, apply 2 1, apply 3 1, hold 2, hold 3, leave, "
    "replicate 2 1, replicate 3 1, retire 1, retire 1, change 3 2, replicate 1 1, replicate 2 1, replicate 3 1, apply 1 1, "
    "apply 2 1, hold 1, hold 2, leave, replicate 1 1, replicate 2 1, apply 1 1, put 1 0 1, put 0 0 0, put 0 0 1, pin 0 0, "
    "replicate 1 1, replicate 2 1",
    "disaster, body 0, put 0 0 0, put 1 0 0, put 0 0 1, put 1 0 1, pin 0 0, replicate 1 1, replicate 2 1, apply 0 1, apply 1 1, "
    "apply 2 1, fetch 2 0 0, rot 0 0 0, rot 1 0 0, notice 0 0 0, notice 1 0 0, lose 0 0",
    LOST + "bring 0 0 0, bring 1 0 0, ask 0 0, ask 1 0, find 0 0, replicate 1 1, replicate 2 1",
    LOST + "find 0 0, bring 0 0 0, ask 0 0, find 0 0, replicate 1 1, replicate 2 1",
    LOST + "bring 0 0 0, tick, tick, tick, tick, tick, pin 0 0, replicate 1 1, replicate 2 1, apply 0 1, sync 0, sweep 0 0 0",
    # A member has all of it, leaves, is removed with its copies, and comes back as a voter.
    LOST + "bring 1 0 0, ask 1 0, change 1 2, replicate 2 1, replicate 3 1, replicate 1 1, apply 2 1, apply 3 1, hold 2, hold 3, "
    "leave, replicate 2 1, replicate 3 1, retire 1, retire 1, bring 0 0 0, ask 0 0, change 3 2, replicate 1 1, replicate 2 1, "
    "replicate 3 1, apply 1 1, apply 2 1, hold 1, hold 2, leave, replicate 1 1, replicate 2 1, find 0 0, replicate 1 1, replicate 2 1",
)
def play(actions, broken):
    """What broke and the actions that came about until then, or None."""
    model, done = Model(broken), []
    for action in actions:
        try:
            getattr(model, "do_" + action[0])(*action[1:])
            done.append(action)
            model.check()
        except Cannot:
            pass
        except Broken as wrong:
            return str(wrong), done + [action] * (done[-1:] != [action])
    return None

def shortest(actions, broken, kind):
    size = max(1, len(actions) // 2)
    while size:
        start = 0
        while start < len(actions):
            found = play(actions[:start] + actions[start + size:], broken)
            better = found and found[0][0] == kind
            actions, start = (found[1], start) if better else (actions, start + size)
        size //= 2
    return actions

def search(broken, runs, steps, seed):
    for run in range(runs):
        draw = random.Random(seed * 1_000_003 + run)
        names = [name for name in WEIGHTS if run % 4 == 3 or name not in FOUND]
        weights = [WEIGHTS[name] * draw.choice((0.3, 1, 1, 3)) for name in names]   # each run has its likings
        actions = [(name, draw.randrange(4), draw.randrange(4), draw.randrange(4))
                   for name in draw.choices(names, weights, k=steps)]
        if run % 4 == 3:
            actions.insert(0, ("disaster", 0, 0, 0))
        if run < len(RARE):
            actions = [(name, *map(int, (more + ["0"] * 3)[:3])) for name, *more in map(str.split, RARE[run].split(", "))]
        found = play(actions, broken)
        if found:
            actions = shortest(found[1], broken, found[0][0])
            return run + 1, play(actions, broken)[0], actions
    return None

def main():
    options = argparse.ArgumentParser()
    for name, value in (("--runs", 100_000), ("--steps", 400), ("--seed", 1)):
        options.add_argument(name, type=int, default=value)
    options.add_argument("rules", nargs="*")
    given = options.parse_args()
    failed = False
    for rules in [frozenset(given.rules)] if given.rules else [frozenset()] + [frozenset((b,)) for b in BREAKS]:
        name, expected = "+".join(sorted(rules)) or "the design", bool(rules - HARMLESS)
        found = search(rules, given.runs, given.steps, given.seed)
        failed |= bool(found) != expected
        steps = ", ".join(" ".join(map(str, action)) for action in found[2]) if found else ""
        told = f"{found[1]} (schedule {found[0]})\n    {steps}" if found else "holds" + ", NOT FOUND" * expected
        print(f"{name}: {told}", flush=True)
    sys.exit(failed)
main()
