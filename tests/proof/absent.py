"""A lookup that answers "absent" is right, alone or in a batch, whatever other threads do (`src/table/stripe.rs`).

One class and its two buckets are enough: other classes matter only by their bumps. Copies of a class can't be told
apart, so a bucket is a number of copies. All other threads are "any step that the rules allow", so there may be any
number of them. One lookup is enough, since lookups write nothing.
"""
from prover import And, If, Implies, Not, Or, one_if

PROMISE = 'an answer "absent" is right, of a single lookup and in a batch, also beside clear'
CONTROLS = "RelocateWithoutBump RelocateBumpsLate RelocateClearsFirst RemoveWithoutBump RemoveBumpsLate".split()
CONTROLS += "ClearWithoutBump LookupWithoutVersion".split()
# What the holder of the stripe's lock is about.
FREE, HELD, PUT, BUMPED, TAKEN, REMOVING, REMOVED, CLEARING, LIFTED = range(9)
# How far the lookup is. A batch compares only after further lookups, which have nothing to do with this one.
OUT, VERSION, FIRST, SECOND, COMPARED, ABSENT = range(6)
START = dict(F=0, S=0, V=0, h=FREE, from_first=False, cleared_first=False, cleared_second=False)
START |= dict(pc=OUT, v0=0, saw=False, out=False, since=False)
MOST = dict(F=2, S=2, V=2)

def steps(s, fault):
    F, S, V, h, pc = s.F, s.S, s.V, s.h, s.pc
    yield "lock", h == FREE, dict(h=HELD)
    yield "unlock", h == HELD, dict(h=FREE)
    # Of another class, or of a removal whose exchange fails.
    yield "bump in vain", h == HELD, dict(V=V + 1)
    for a, z, first in (("F", "S", True), ("S", "F", False)):
        from_here, place = s.from_first == first, f"the {'first' if first else 'second'} bucket"
        add, take = {z: s[z] + 1}, {a: s[a] - 1}
        yield f"insert into {place}", True, {a: s[a] + 1, "since": Or(s.since, s.out)}
        if fault == "RelocateClearsFirst":
            yield f"relocation from {place}: bump and take", And(h == HELD, s[a] > 0), dict(take, h=LIFTED, from_first=first, V=V + 1)
            yield f"relocation from {place}: put", And(h == LIFTED, from_here), dict(add, h=HELD)
        else:
            late = fault == "RelocateBumpsLate"
            bump = dict(V=V if fault == "RelocateWithoutBump" else V + 1)
            yield f"relocation from {place}: put", And(h == HELD, s[a] > 0), dict(add, h=PUT, from_first=first)
            yield f"relocation from {place}: bump", And(h == (TAKEN if late else PUT), from_here), dict(bump, h=HELD if late else BUMPED)
            yield f"relocation from {place}: take", And(h == (PUT if late else BUMPED), from_here), dict(take, h=TAKEN if late else HELD)
        if fault == "RemoveBumpsLate":
            yield f"removal from {place}: take", And(h == HELD, s[a] > 0), dict(take, h=REMOVED)
            yield "removal: bump", h == REMOVED, dict(h=HELD, V=V + 1)
            continue
        bump = dict(V=V if fault == "RemoveWithoutBump" else V + 1)
        yield f"removal from {place}: bump", And(h == HELD, s[a] > 0), dict(bump, h=REMOVING, from_first=first)
        yield f"removal from {place}: take", And(h == REMOVING, from_here), dict(take, h=HELD)
    bump = V if fault == "ClearWithoutBump" else V + 1
    yield "clear: bump", h == HELD, dict(h=CLEARING, V=bump, cleared_first=False, cleared_second=False)
    for x, which in (("F", "first"), ("S", "second")):
        yield f"clear: swap the {which} bucket", And(h == CLEARING, Not(s["cleared_" + which])), {x: 0, "cleared_" + which: True}
    yield "clear: end", And(h == CLEARING, s.cleared_first, s.cleared_second), dict(h=HELD)
    yield "lookup: read the version", pc == OUT, dict(pc=VERSION, v0=V, out=False, since=False)
    yield "lookup: read the first bucket", pc == VERSION, dict(pc=FIRST, saw=F > 0)
    yield "lookup: read the second bucket", pc == FIRST, dict(pc=SECOND, saw=Or(s.saw, S > 0))
    unchanged = True if fault == "LookupWithoutVersion" else V == s.v0
    yield "lookup: read the version again", And(pc == SECOND, unchanged), dict(pc=COMPARED)
    yield "lookup: answer absent", And(pc == COMPARED, Not(s.saw)), dict(pc=ABSENT)

def left(s):
    """The copies that are in. One that is being relocated is in two slots, or for a moment, if there is a fault, in none.
    One that is being removed counts as out from the bump on, and so does what `clear` is yet to take."""
    cleared = If(s.cleared_first, 0, s.F) + If(s.cleared_second, 0, s.S)
    return s.F + s.S - one_if(Or(s.h == REMOVING, s.h == PUT, s.h == BUMPED)) + one_if(s.h == LIFTED) - If(s.h == CLEARING, cleared, 0)

def watch(s, t):
    """Whether the class was out at a moment of the lookup."""
    return dict(out=Or(t.out, And(t.pc >= VERSION, t.pc <= SECOND, left(t) <= 0)))

def invariant(s):
    F, S, V, h, pc, v0 = s.F, s.S, s.V, s.h, s.pc, s.v0
    first, second = s.from_first, Not(s.from_first)
    unseen, none_since = And(V == v0, Not(s.saw)), And(s.out, Not(s.since))
    kept = And(Implies(h == REMOVING, And(second, S >= 2)), Implies(h == CLEARING, s.cleared_second))
    return [
        F >= 0, S >= 0, Or(h <= BUMPED, h == REMOVING, h == CLEARING), Implies(pc != OUT, v0 <= V),
        Implies(Or(h == PUT, h == BUMPED), And(F >= 1, S >= 1)), Implies(h == REMOVING, Or(And(first, F >= 1), And(second, S >= 1))),
        # The first bucket was seen empty. So there is a copy in the second one that nobody takes without another bump.
        Implies(And(pc == FIRST, unseen, Not(s.out)), And(h != BUMPED, S >= 1, kept)),
        # Or the class was out. Then it is still out, unless there was an insert.
        Implies(And(pc != OUT, none_since), left(s) <= 0),
        Implies(And(pc == FIRST, unseen, none_since), And(F == 0, Implies(h == REMOVING, second))),
        Implies(And(pc == SECOND, unseen), And(s.out, Or(s.since, F + S == 0))),
        Implies(And(pc >= COMPARED, Not(s.saw)), And(s.out, Or(s.since, F + S == 0))), Implies(pc == ABSENT, Not(s.saw)),
    ]

def wrong(s):
    return {
        "the lookup missed a copy": And(s.pc == ABSENT, Not(s.out)),
        "the lookup missed a copy that is still there, and nothing was inserted since": And(s.pc == ABSENT, s.F + s.S > 0, Not(s.since)),
    }
