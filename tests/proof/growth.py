"""While groups of buckets are split and merged, no copy is lost or doubled, and lookups are right (`src/growth/mod.rs`).

One class, its two sides, and any number of splits and merges, one at a time. To the class a split is what a merge is: the
copies of a side are in the word at its place (`P`), then in `moving` (`M`), then in the word at another place. The group may
have either side, both or none. A word that is nobody's contents may look like anything.
"""
from prover import And, If, Implies, Not, Or, one_if

PROMISE = "beside splits and merges no copy is lost or doubled, and what lookups and writers see is right"
CONTROLS = "SplitsUnannounced MergesUnannounced LookupIgnoresMoving LookupWithoutEpoch WriterWithoutEpoch".split()
CONTROLS += "AddsWithoutGate TakesWithoutGate LookupWithoutVersion RelocateWithoutBump RelocateClearsFirst".split()
SIDES = (1, 2)
# What the holder of the stripe's lock is about. `LOOKING`: reads the copies of both sides.
FREE, HELD, PUT, BUMPED, LIFTED, REMOVING, LOOKING = range(7)
# Who has the gate of a side: a take, or the thread that changes the size.
TAKE, SIZE = 1, 2
# How far that thread is. The state has changed, but not yet the epoch: `MOVES`, `ENDS`.
IDLE, GATES, MOVES, STORES, ENDS = range(5)
# How far an operation is: it has read the epoch (a writer has the lock by then), the state, the version, the sides.
OUT, EPOCH, STATE, BEGUN, READ_1, READ_2, ASKED, ABSENT, PRESENT = range(9)
START = dict(P1=0, P2=0, M1=0, M2=0, N=0, V=0, h=FREE, src=1, g1=FREE, g2=FREE)
START |= dict(n=0, r=IDLE, moving=False, stored1=False, stored2=False)  # `n`: how often the state has changed
START |= dict(pc=OUT, writes=False, e0=0, n0=0, v0=0, seen=0, gone=False, ever=False, least=0, most=0, off=False)
START |= dict(late=0, late_n=0)  # Only of faults: an add or a take without the gate, and the state in which it found its place
MOST = dict(N=1, P1=1, P2=1, V=2, n=4)

def epoch(s):
    return s.n - one_if(Or(s.r == MOVES, s.r == ENDS))

def contents(s, x):
    """The copies on a side, in this state."""
    return If(And(s.moving, s[f"g{x}"] == SIZE), s[f"M{x}"], s[f"P{x}"])

def changed(s, x, by):
    """The contents of a side change, in the place where they are."""
    return {f"P{x}": s[f"P{x}"] + by}

def steps(s, fault):
    h, r, pc, V, N, n, writes = s.h, s.r, s.pc, s.V, s.N, s.n, s.writes
    yield "lock", h == FREE, dict(h=HELD)
    yield "unlock", h == HELD, dict(h=FREE)
    yield "bump in vain", h == HELD, dict(V=V + 1)
    for x in SIDES:
        y, gate, here = 3 - x, f"g{x}", contents(s, x)
        free, from_here = s[gate] == FREE, s.src == x
        if fault == "AddsWithoutGate":
            yield f"insert on side {x}: find the place", s.late == 0, dict(late=x, late_n=n)
            lost = Or(s.late_n != n, s[gate] == SIZE)
            yield f"insert on side {x}: store", s.late == x, dict(changed(s, x, If(lost, 0, 1)), N=N + 1, late=0)
        else:
            yield f"insert on side {x}", free, dict(changed(s, x, 1), N=N + 1)
        if fault == "TakesWithoutGate":
            yield f"removal from side {x}: bump", And(h == HELD, here > 0), dict(h=REMOVING, src=x, V=V + 1, late_n=n)
            lost = Or(s.late_n != n, s[gate] == SIZE)
            yield f"removal from side {x}: take", And(h == REMOVING, from_here), dict(changed(s, x, If(lost, 0, -1)), h=HELD, N=N - 1)
        else:
            yield f"removal from side {x}: bump", And(h == HELD, free, here > 0), {"h": REMOVING, "src": x, "V": V + 1, gate: TAKE}
            yield f"removal from side {x}: take", And(h == REMOVING, from_here), {**changed(s, x, -1), "h": HELD, "N": N - 1, gate: FREE}
        if fault == "RelocateClearsFirst":
            yield f"relocation from side {x}: bump and take", And(h == HELD, free, here > 0), dict(changed(s, x, -1), h=LIFTED, src=x, V=V + 1)
            yield f"relocation from side {x}: put", And(h == LIFTED, from_here, s[f"g{y}"] == FREE), dict(changed(s, y, 1), h=HELD)
        else:
            bump = V if fault == "RelocateWithoutBump" else V + 1
            yield f"relocation from side {x}: put", And(h == HELD, here > 0, s[f"g{y}"] == FREE), dict(changed(s, y, 1), h=PUT, src=x)
            yield f"relocation from side {x}: bump", And(h == PUT, from_here, free), {"h": BUMPED, "V": bump, gate: TAKE}
            yield f"relocation from side {x}: take", And(h == BUMPED, from_here), {**changed(s, x, -1), "h": HELD, gate: FREE}
        yield f"resize: lock the gate of side {x}, copy to moving", And(r == GATES, free), {gate: SIZE, f"M{x}": s[f"P{x}"]}
        stored = s[f"stored{x}"]
        silent = fault in ("SplitsUnannounced", "MergesUnannounced")  # The contents are where no copies are any more.
        word = 0 if silent else s[f"M{x}"]
        yield f"resize: store the words of side {x}", And(r == STORES, s[gate] == SIZE, Not(stored)), {f"P{x}": word, f"stored{x}": True}
    ungated = {f"g{x}": If(s[f"g{x}"] == SIZE, FREE, s[f"g{x}"]) for x in SIDES}
    all_stored = And(*[Or(s[f"g{x}"] != SIZE, s[f"stored{x}"]) for x in SIDES])
    at_last = {f"P{x}": If(s[f"g{x}"] == SIZE, s[f"M{x}"], s[f"P{x}"]) for x in SIDES}
    yield "resize: begin", r == IDLE, dict(r=GATES)
    yield "resize: give up, unlock the gates", r == GATES, dict(ungated, r=IDLE)
    if fault in ("SplitsUnannounced", "MergesUnannounced"):
        yield "resize: announce nothing", r == GATES, dict(r=STORES)
    else:
        yield "resize: the state says that the group is moving", r == GATES, dict(r=MOVES, n=n + 1, moving=True)
        yield "resize: count that", r == MOVES, dict(r=STORES)
    yield "resize: the state has the new size", And(r == STORES, all_stored), dict(at_last, r=ENDS, n=n + 1, moving=False)
    yield "resize: count that, unlock the gates", r == ENDS, dict(ungated, r=IDLE, stored1=False, stored2=False)
    yield "lookup: read the epoch", pc == OUT, dict(pc=EPOCH, writes=False, e0=epoch(s), seen=0)
    yield "writer: lock, read the epoch", And(pc == OUT, h == FREE), dict(pc=EPOCH, writes=True, h=LOOKING, e0=epoch(s), seen=0)
    yield "read the state", pc == EPOCH, dict(pc=STATE, n0=n)
    yield "lookup: read the version", And(pc == STATE, Not(writes)), dict(pc=BEGUN, v0=V)
    yield "writer: begin to read", And(pc == STATE, writes), dict(pc=BEGUN)
    for x, before, then in ((1, BEGUN, READ_1), (2, READ_1, READ_2)):
        in_group, right = s[f"g{x}"] == SIZE, valid(s)
        there = If(s.n0 == n, contents(s, x), If(And(in_group, r == ENDS), s[f"M{x}"], s[f"P{x}"]))
        if fault == "LookupIgnoresMoving":
            there = If(And(in_group, Not(writes)), s[f"P{x}"], there)
            right = And(right, Or(writes, Not(And(in_group, s.moving, s[f"stored{x}"]))))
        yield f"read side {x}", And(pc == before, right), dict(pc=then, seen=s.seen + there)
        for copies in (0, 1):
            yield f"read side {x}: a word of another state, with {copies}", And(pc == before, Not(right)), dict(pc=then, seen=s.seen + copies)
    still = True if fault == "LookupWithoutVersion" else Or(V == s.v0, s.seen > 0)
    yield "lookup: read the version again", And(pc == READ_2, Not(writes), still), dict(pc=ASKED)
    same = Or(epoch(s) == s.e0, And(Not(writes), fault == "LookupWithoutEpoch"), And(writes, fault == "WriterWithoutEpoch"))
    yield "lookup: read the epoch again, answer", And(pc == ASKED, same), dict(pc=If(s.seen > 0, PRESENT, ABSENT))
    off = Or(s.seen < s.least, s.seen > s.most)
    yield "writer: read the epoch again, add, take or unlock", And(pc == READ_2, writes, same), dict(pc=ABSENT, h=HELD, off=off)

def valid(s):
    """Whether what an operation reads, by the state that it knows, is the contents of the side."""
    return Or(s.n0 == s.n, And(s.n0 == s.n - 1, epoch(s) != s.n))

def total(s):
    moved = one_if(Or(s.h == PUT, s.h == BUMPED)) - one_if(s.h == LIFTED)
    return contents(s, 1) + contents(s, 2) - moved

def watch(s, t):
    """Whether the class was out, and whether it was in, at a moment of the call; the least and the most copies in it."""
    looks, live = And(t.pc >= EPOCH, t.pc <= ASKED), t.N - one_if(t.h == REMOVING)  # out from the bump on
    begins = And(s.pc == OUT, t.pc == EPOCH)
    extremes = dict(least=If(Or(begins, And(looks, t.N < t.least)), t.N, t.least), most=If(Or(begins, And(looks, t.N > t.most)), t.N, t.most))
    return dict(extremes, gone=Or(t.gone, And(looks, live <= 0)), ever=Or(t.ever, And(looks, t.N > 0)))

def invariant(s):
    h, r, pc, V, src, writes = s.h, s.r, s.pc, s.V, s.src, s.writes
    at_src, at_dst = If(src == 1, s.P1, s.P2), If(src == 1, s.P2, s.P1)
    same, reads = epoch(s) == s.e0, And(pc >= BEGUN, pc <= READ_2)
    shape = [
        *[s[name] >= 0 for name in ("P1", "P2", "N", "n", "r", "h", "pc")], h <= LOOKING, h != LIFTED, r <= ENDS, pc <= PRESENT,
        Or(src == 1, src == 2), s.late == 0, s.moving == Or(r == MOVES, r == STORES), total(s) == s.N,
    ]
    for x in SIDES:
        gate, stored = s[f"g{x}"], s[f"stored{x}"]
        shape += [
            # A group that has this side: its words and `moving` have the same copies, at each change of the state.
            Implies(gate == SIZE, And(r != IDLE, s[f"M{x}"] == s[f"P{x}"])), Implies(stored, And(gate == SIZE, Or(r == STORES, r == ENDS))),
            (gate == TAKE) == And(Or(h == BUMPED, h == REMOVING), src == x), Or(gate == FREE, gate == TAKE, gate == SIZE),
        ]
    holder = [
        Implies(Or(h == PUT, h == BUMPED), And(at_src >= 1, at_dst >= 1)), Implies(h == REMOVING, at_src >= 1),
        (h == LOOKING) == And(writes, pc >= EPOCH, pc <= READ_2),
    ]
    # What an operation has yet to read.
    unread = {1: pc <= BEGUN, 2: pc <= READ_1}
    yet = sum(If(unread[x], s[f"P{x}"], 0) for x in SIDES)
    src_unread = Or(*[And(src == x, unread[x]) for x in SIDES])
    # A copy that a lookup has yet to read, and that nobody takes without another bump.
    covered = And(
        yet - one_if(Or(h == BUMPED, h == REMOVING)) >= 1, Implies(h == BUMPED, unread[1]), Implies(h == REMOVING, src_unread),
    )
    counted = And(s.seen + yet >= s.least, s.seen + yet <= s.N)
    look = [
        Implies(pc >= EPOCH, s.e0 <= epoch(s)), Implies(pc >= STATE, And(s.e0 <= s.n0, s.n0 <= s.n)),
        Implies(And(pc >= BEGUN, Not(writes)), s.v0 <= V), s.seen >= 0, Implies(pc <= BEGUN, s.seen == 0),
        Implies(And(reads, Not(writes), same, V == s.v0, s.seen == 0, Not(s.gone)), covered),
        Implies(And(pc == ASKED, same, s.seen == 0), s.gone), Implies(And(reads, same, s.seen > 0), s.ever),
        Implies(And(pc == ASKED, same, s.seen > 0), s.ever), Implies(pc == ASKED, Not(writes)),
        Implies(And(pc >= EPOCH, pc <= READ_2, writes, same), counted),
        Implies(And(pc >= EPOCH, pc <= ASKED), And(s.least <= s.N, s.N <= s.most)), Not(s.off),
        Implies(pc == ABSENT, Or(writes, s.gone)), Implies(pc == PRESENT, And(s.ever, Not(writes))),
    ]
    return shape + holder + look

def wrong(s):
    return {
        "a copy is lost or doubled": total(s) != s.N,
        "the lookup missed a copy": And(s.pc == ABSENT, Not(s.writes), Not(s.gone)),
        "the lookup found what was not there": And(s.pc == PRESENT, Not(s.ever)),
        "the writer miscounts": s.off,
    }
