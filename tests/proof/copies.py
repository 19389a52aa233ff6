"""Writers lose no copy and double none, `count` is exact, and of all that race to add a key one does
(`src/table/stripe.rs`, *Linearizability*).

One class and its two buckets. `N` is how many copies were added, less those removed. One operation of each kind is
modeled step by step. The others are single steps: an exchange either does its work at once, or it changes nothing.
"""
from prover import And, If, Implies, Not, Or, one_if

PROMISE = "no copy is lost or doubled; count, remove and clear are exact; of all that race in insert_if_absent one adds"
CONTROLS = "RelocateWithoutRecheck RelocateWithoutLock RemoveWithoutLock AddOverwrites TakeOverwrites".split()
CONTROLS += "CountWithoutLock InsertIfAbsentWithoutLock ClearWithoutLocks".split()
# Who has the lock of the class. A check reads both buckets: that of `count`, of a removal that finds nothing, or of
# `insert_if_absent`.
FREE, RELOCATES, REMOVES, CHECKS, CLEARS = range(5)
# How far the relocation, the removal, the check, the insert and `clear` are; which bucket they began with.
NOT, BEGUN, FURTHER = range(3)
OWNERS = dict(moves=RELOCATES, takes=REMOVES, checks=CHECKS, clears=CLEARS)
START = dict(F=0, S=0, N=0, lock=FREE, plain=False, moves=NOT, move_at=0, takes=NOT, take_at=0, take_saw=0)
START |= dict(checks=NOT, least=0, most=0, saw=0, adds=NOT, add_at=0, add_saw=0, miscounts=False)
START |= dict(clears=NOT, cleared_F=False, cleared_S=False, added=False, leaves=False)
MOST = dict(N=3, F=3, S=3)

def steps(s, fault):
    F, S, N, lock = s.F, s.S, s.N, s.lock
    def locked(owner, *without):
        """What an operation needs and changes where it locks, and what it changes where it unlocks."""
        return (True, {}, {}) if fault in without else (lock == FREE, dict(lock=owner), dict(lock=FREE))
    for at, (a, z) in enumerate(("FS", "SF")):
        free, begin, end = locked(RELOCATES, "RelocateWithoutLock")
        there = True if fault == "RelocateWithoutRecheck" else s[a] > 0
        mine = s.move_at == at
        yield f"relocation: lock, find a copy in {a}", And(free, s.moves == NOT, there), dict(begin, moves=BEGUN, move_at=at)
        yield f"relocation: put it into {z}", And(s.moves == BEGUN, mine), {z: s[z] + 1, "moves": FURTHER}
        yield f"relocation: take it from {a}", And(s.moves == FURTHER, mine), {a: If(s[a] > 0, s[a] - 1, 0), "moves": NOT, **end}
        free, begin, end = locked(REMOVES, "RemoveWithoutLock")
        mine = And(s.takes == BEGUN, s.take_at == at)
        same = True if fault == "TakeOverwrites" else s[a] == s.take_saw
        yield f"removal: lock, find a copy in {a}", And(free, s.takes == NOT, s[a] > 0), dict(begin, takes=BEGUN, take_at=at, take_saw=s[a])
        yield f"removal: exchange {a}", And(mine, same), {a: s.take_saw - 1, "N": N - 1, "takes": NOT, **end}
        yield f"removal: the exchange of {a} fails", And(mine, s[a] > 0), dict(take_saw=s[a])
        same = True if fault == "AddOverwrites" else s[a] == s.add_saw
        yield f"insert into {a}: read", s.adds == NOT, dict(adds=BEGUN, add_at=at, add_saw=s[a])
        yield f"insert into {a}: exchange", And(s.adds == BEGUN, s.add_at == at, same), {a: s.add_saw + 1, "N": N + 1, "added": True, "adds": NOT, "plain": True}
        yield f"insert into {a}: the exchange fails", And(s.adds == BEGUN, s.add_at == at), dict(adds=NOT)
        yield f"another insert into {a}", True, {a: s[a] + 1, "N": N + 1, "added": True, "plain": True}
        free, _, end = locked(CHECKS, "InsertIfAbsentWithoutLock")
        yield f"another insert_if_absent adds to {a}", And(free, F + S == 0), {a: s[a] + 1, "N": N + 1, "added": True}
        yield f"insert_if_absent: add to {a}, unlock", And(s.checks == FURTHER, s.saw == 0, fault != "CountWithoutLock"), {a: s[a] + 1, "N": N + 1, "added": True, "checks": NOT, **end}
    free, begin, end = locked(CLEARS, "ClearWithoutLocks")
    yield "clear: lock", And(free, s.clears == NOT), dict(begin, clears=BEGUN, cleared_F=False, cleared_S=False, added=False)
    for a in "FS":
        yield f"clear: swap {a}", And(s.clears == BEGUN, Not(s["cleared_" + a])), {a: 0, "N": N - s[a], "cleared_" + a: True}
    ends = And(s.clears == BEGUN, s.cleared_F, s.cleared_S)
    yield "clear: unlock", ends, dict(end, clears=NOT, leaves=And(F + S > 0, Not(s.added)))
    free, begin, end = locked(CHECKS, "InsertIfAbsentWithoutLock", "CountWithoutLock")
    yield "check: lock, read F", And(free, s.checks == NOT), dict(begin, checks=BEGUN, least=N, most=N, saw=F)
    saw = s.saw + S
    # `N` changes by one at a time. So what lies between the least and the most was right at some moment.
    miscounts = And(fault != "InsertIfAbsentWithoutLock", Or(saw < s.least, saw > s.most))
    yield "check: read S", s.checks == BEGUN, dict(checks=FURTHER, saw=saw, miscounts=miscounts)
    yield "check: unlock", s.checks == FURTHER, dict(end, checks=NOT)

def total(s):
    return s.F + s.S - one_if(s.moves == FURTHER)

def watch(s, t):
    """The least and the most copies that there were during the check."""
    checks, N = t.checks == BEGUN, t.N
    return dict(least=If(And(checks, N < t.least), N, t.least), most=If(And(checks, N > t.most), N, t.most))

def invariant(s):
    F, S, N, lock = s.F, s.S, s.N, s.lock
    moves_from, takes_from = If(s.move_at == 0, F, S), If(s.take_at == 0, F, S)
    return [
        *[s[name] >= 0 for name in ("F", "S", "N", "lock", "saw")],
        *[And(s[name] >= NOT, s[name] <= FURTHER) for name in ("moves", "takes", "checks", "adds", "clears")],
        *[And(s[name] >= 0, s[name] <= 1) for name in ("move_at", "take_at", "add_at")], lock >= FREE, lock <= CLEARS,
        *[(s[name] != NOT) == (lock == owner) for name, owner in OWNERS.items()],
        *[Implies(And(s.clears != NOT, s["cleared_" + a], Not(s.added)), s[a] == 0) for a in "FS"], Not(s.leaves), total(s) == N,
        Implies(s.moves != NOT, moves_from >= 1), Implies(s.moves == FURTHER, And(F >= 1, S >= 1)),
        Implies(s.takes != NOT, And(s.take_saw >= 1, takes_from >= 1)),
        Implies(s.checks == BEGUN, And(s.least <= s.saw + S, s.saw <= F, s.most >= N, s.least <= N)),
        Implies(And(s.checks != NOT, Not(s.plain)), N == s.saw + If(s.checks == BEGUN, S, 0)), Or(s.plain, N <= 1), Not(s.miscounts),
    ]

def wrong(s):
    return {
        "a copy is lost or doubled": total(s) != s.N,
        "the check has seen what there was at no moment": s.miscounts,
        "clear leaves a copy, and nothing was added meanwhile": s.leaves,
        "two insert_if_absent have added": And(Not(s.plain), s.N > 1),
    }
