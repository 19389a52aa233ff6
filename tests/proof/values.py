"""The values that a lookup in a maplet finds are those that its key had at one moment (`src/table/maplet.rs`).

All stores that change anything of the class are alike here: an insert's, a removal's, the one by which `replace` changes
a value in its place, and both of a relocation, which show the same set. A bucket is what it has become since it was
read. If both have changed between the two reads, the lookup may have seen a set that the key never had.
"""
from prover import And, If, Implies, Not, Or

PROMISE = "the values that a lookup finds were there at one moment, while values are added, replaced, moved and removed"
# Without a bump all stores are alike, too: so this stands for `RelocateAddsWithoutBump` and `ReplaceWithoutBump` as well.
CONTROLS = "AddValueWithoutBump AddValueWithoutLock LookupWithoutVersion".split()
FREE, HELD, BUMPED = range(3)
OUT, VERSION, FIRST, SECOND, FOUND = range(5)
START = dict(V=0, h=FREE, other=0, pc=OUT, v0=0, changed_first=False, changed_second=False)
MOST = dict(V=3)

def steps(s, fault):
    V, h, pc = s.V, s.h, s.pc
    yield "store: lock", h == FREE, dict(h=HELD)
    yield "store: unlock", h == HELD, dict(h=FREE)
    yield "store: bump", h == HELD, dict(h=BUMPED, V=V + 1)
    # A bump for which there is no store: the exchange has failed.
    yield "store: bump again", h == BUMPED, dict(V=V + 1)
    may = Or(h == BUMPED, And(h == HELD, fault == "AddValueWithoutBump"))
    for which in ("first", "second"):
        yield f"store: change the {which} bucket", may, {"h": HELD, "changed_" + which: True}
    if fault == "AddValueWithoutLock":
        # Each thread's own bump, and then its store: nothing keeps them together.
        yield "store without a lock: bump", s.other == 0, dict(other=1, V=V + 1)
        yield "store without a lock: change the first bucket", s.other == 1, dict(other=0, changed_first=True)
    yield "lookup: read the version", pc == OUT, dict(pc=VERSION, v0=V)
    yield "lookup: read the first bucket", pc == VERSION, dict(pc=FIRST, changed_first=False, changed_second=False)
    yield "lookup: read the second bucket", pc == FIRST, dict(pc=SECOND)
    same = True if fault == "LookupWithoutVersion" else V == s.v0
    yield "lookup: read the version again", And(pc == SECOND, same), dict(pc=FOUND)

def watch(s, t):
    """What changes once both words are read has been seen by nobody."""
    return {x: If(s.pc >= SECOND, s[x], t[x]) for x in ("changed_first", "changed_second")}

def invariant(s):
    V, h, pc, both = s.V, s.h, s.pc, And(s.changed_first, s.changed_second)
    reads, quiet = And(pc >= FIRST, pc <= SECOND), V == s.v0
    return [
        h >= FREE, h <= BUMPED, s.other == 0, Implies(pc != OUT, s.v0 <= V),
        # Without a bump, at most one store follows: the one that had been announced.
        Implies(And(pc == FIRST, quiet, h == BUMPED), Not(Or(s.changed_first, s.changed_second))),
        Implies(And(reads, quiet), Not(both)), Implies(pc == FOUND, Not(both)),
    ]

def wrong(s):
    return {"both buckets have changed between the reads": And(s.pc == FOUND, s.changed_first, s.changed_second)}
