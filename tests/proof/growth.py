"""While a table is replaced by a larger or a smaller one, no copy is lost or doubled, and "absent" is right
(`src/growth/mod.rs`).

One class: its two buckets in `A`, the current table when the operation begins, its two in the next table `B`, and `E`, its
copies in all later tables. A switch makes `B` the new `A`. Once an operation holds `A`, it goes on with `E` instead. So there
may be any number of resizes. A removal whose exchange will fail is a bump in vain: so one that has bumped will take.
"""
from prover import And, If, Implies, Not, Or, one_if

PROMISE = "amid growth, shrink and undo no copy is lost or doubled, and a lookup's answers are right"
CONTROLS = "SplitMarksFirst SplitOverwrites SplitWithoutLock WriterBringsNothing SearchBringsNothing".split()
CONTROLS += "RelocateOutdated LookupIgnoresNext LookupTooEarly LookupIgnoresLaterNext WriterIgnoresLaterNext".split()
CONTROLS += "SplitsTooEarly MoveWithoutBump MoveBumpsLate UndoEndsTooSoon SwitchesTooSoon LookupWithoutVersion".split()
CELLS = A1, A2, B1, B2, E = "A1 A2 B1 B2 E".split()
NUMBER = {cell: number for number, cell in enumerate(CELLS)}
A, B = (A1, A2), (B1, B2)
# What the lock's holder is about. `LOOKING`: a writer's look. `BEGINNING`: `A` has its next table, the phase is yet even.
FREE, HELD, PUT, BUMPED, TAKEN, REMOVING, LOOKING, BEGINNING = range(8)
NONE, NEXT, OTHER = range(3)  # the next table of `A`. An operation that holds `B` may find that there is another one instead
# How far an operation is: it has read the phase, the current table, its next table, the version (or locked). In a growth a
# lookup then reads one word of each bucket (`ONE`: of the first). If that does not do, it reads all, as others do. Then it
# compares the version (or unlocks), and the phase.
OUT, PHASE, HOLDS, TABLES, BEGUN, ONE, ALL, READ_A1, READ_A2, READ_B1, READ_B2, ASKED, ABSENT, PRESENT = range(14)
START = dict(A1=0, A2=0, B1=0, B2=0, E=0, N=0, V=0, h=FREE, src=0, dst=0)
START |= dict(mA1=False, mA2=False, mB1=False, mB2=False, fill1=-1, fill2=-1, late=-1)
START |= dict(next=NONE, grows=False, undoes=False, phase=0, odd=False, over=False, later=False, later_grows=False)
START |= dict(pc=OUT, writes=False, both=False, p0=0, odd0=False, v0=0, read1=False, read2=False)
START |= dict(gone=False, ever=False, least=0, most=0, seen=0, off=False)
MOST = dict(N=1, A1=1, A2=1, B1=1, B2=1, E=1, V=1, phase=3)

def steps(s, fault):
    h, pc, V, N, writes, both, odd, phase = s.h, s.pc, s.V, s.N, s.writes, s.both, s.odd, s.phase
    amid = And(s.next == NEXT, h != BEGINNING)
    grows, shrinks = And(amid, s.grows), And(amid, Not(s.grows), Not(s.over))
    may_split = And(s.next == NEXT, s.grows) if fault == "SplitsTooEarly" else grows
    split = And(s.mA1, s.mA2)
    brought = Or(Not(s.grows), split)  # before they use the larger table
    usable_b = And(amid, True if fault == "WriterBringsNothing" else brought)
    has_e = Or(s.later, s.next == OTHER)
    holds_b = And(both, pc >= TABLES)
    one, two, ends = dict(phase=phase + 1, odd=True), And(both, Not(writes)), dict(phase=phase + 1, odd=False)
    for cell in CELLS:
        usable = Not(s["m" + cell]) if cell in A else And(usable_b, Not(s["m" + cell])) if cell in B else has_e
        yield f"insert into {cell}", usable, {cell: s[cell] + 1, "N": N + 1}
        yield f"removal from {cell}: bump", And(h == HELD, usable, s[cell] > 0), dict(h=REMOVING, src=NUMBER[cell], V=V + 1)
        yield f"removal from {cell}: take", And(h == REMOVING, s.src == NUMBER[cell], s[cell] > 0), {cell: s[cell] - 1, "N": N - 1, "h": HELD}
    yield "lock", h == FREE, dict(h=HELD)
    yield "unlock", h == HELD, dict(h=FREE)
    yield "bump in vain", h == HELD, dict(V=V + 1)
    # Copies that are put, announced by a bump, and taken: relocations within a table, and moves from one to another.
    newest_a = True if fault == "RelocateOutdated" else Or(s.next == NONE, s.undoes)
    newest_b = And(amid, Not(s.undoes), Not(s.later), True if fault == "SearchBringsNothing" else brought)
    later_shrinks = And(s.later, Not(s.later_grows))
    moves = [(a, z, "relocation", newest) for cells, newest in ((A, newest_a), (B, newest_b)) for a in cells for z in cells if a != z]
    moves += [(a, z, "move", And(shrinks, Not(s.undoes))) for a in A for z in B]
    moves += [(a, z, "move back", And(shrinks, s.undoes)) for a in B for z in A]
    moves += [(a, E, "move", later_shrinks) for a in B] + [(E, z, "move back", later_shrinks) for z in B]
    for a, z, what, allowed in moves:
        room = True if z == E else Not(s["m" + z])
        yield f"{what} from {a} to {z}: put", And(h == HELD, allowed, s[a] > 0, room), {z: s[z] + 1, "h": PUT, "src": NUMBER[a], "dst": NUMBER[z]}
    crosses = Or(*[And(s.src == NUMBER[a], s.dst == NUMBER[z]) for a, z, what, _ in moves if what != "relocation"])
    silent, late = And(crosses, fault == "MoveWithoutBump"), And(crosses, fault == "MoveBumpsLate")
    yield "relocation or move: bump", Or(h == TAKEN, And(h == PUT, Not(late))), dict(h=If(h == TAKEN, HELD, BUMPED), V=If(silent, V, V + 1))
    for a in CELLS:
        taken, may = {a: If(s[a] > 0, s[a] - 1, s[a]), "h": If(late, TAKEN, HELD)}, Or(h == BUMPED, And(h == PUT, late))
        yield f"relocation or move from {a}: take", And(may, s.src == NUMBER[a]), taken
    fresh, at_rest = dict(B1=0, B2=0, mB1=False, mB2=False), And(h == FREE, Not(odd))
    for what, larger in (("growth", True), ("shrink", False)):
        yield f"{what}: begin, announce the table", And(at_rest, s.next == NONE, Not(holds_b)), dict(fresh, next=NEXT, grows=larger, h=BEGINNING)
        yield f"later {what}: begin", And(at_rest, s.over), dict(one, later=True, later_grows=larger)
    yield "begin: the phase becomes odd", h == BEGINNING, dict(one, h=FREE)
    yield "another resize of A: begin", And(at_rest, s.next == NONE, holds_b), dict(one, next=OTHER)
    for a, b, fill in ((A1, B1, "fill1"), (A2, B2, "fill2")):
        free_a, free_b = (And(Not(s["m" + x]), Not(And(h == REMOVING, s.src == NUMBER[x]))) for x in (a, b))
        free = And(may_split, Not(s.over), free_a)
        stored = {} if fault == "SplitMarksFirst" else {b: s[a]}
        yield f"split of {a}: fill", free, {fill: s[a], **stored}
        same = s[fill] >= 0 if fault == "SplitOverwrites" else s[fill] == s[a]
        yield f"split of {a}: mark", And(free, same), {a: 0, "m" + a: True, fill: -1 if stored else s[fill]}
        if fault == "SplitMarksFirst":
            yield f"split of {a}: fill after the mark", And(s["m" + a], s[fill] >= 0), {b: s[fill], fill: -1}
        yield f"shrink: mark {a}", And(shrinks, Not(s.undoes), s[a] == 0), {"m" + a: True}
        yield f"undo: unmark {a}", s.undoes, {"m" + a: False}
        yield f"undo: mark {b}", And(s.undoes, s[b] == 0), {"m" + b: True}
        yield f"another resize of A: split {a}", And(s.next == OTHER, free_a), {a: 0, E: s[E] + s[a], "m" + a: True}
        yield f"later growth: split {b}", And(s.later, s.later_grows, free_b), {b: 0, E: s[E] + s[b], "m" + b: True}
        yield f"later shrink: mark {b}", And(later_shrinks, s[b] == 0), {"m" + b: True}
        yield f"later undo: unmark {b}", later_shrinks, {"m" + b: False}
    if fault == "SplitWithoutLock":
        yield "second split of A1: read", And(grows, Not(s.mA1)), dict(late=s[A1])
        yield "second split of A1: fill, too late", And(s.mA1, s.late >= 0), dict(B1=s.late, late=-1)
    yield "undo: begin", And(shrinks, Not(s.undoes), h == FREE), dict(ends if fault == "UndoEndsTooSoon" else {}, undoes=True)
    all_back = And(s.undoes, s.mB1, s.mB2, Not(s.mA1), Not(s.mA2))
    yield "undo: take the next table away", all_back, dict(next=NONE, undoes=False)
    yield "later undo: end", And(later_shrinks, s[E] == 0, Not(s.mB1), Not(s.mB2)), dict(ends, later=False)
    done = And(amid, Not(s.over), Not(s.undoes), True if fault == "SwitchesTooSoon" else split)
    renamed = {name: If(s[name] >= 2, s[name] - 2, s[name]) for name in ("src", "dst")}
    renamed |= {a: s[b] for a, b in zip(A, B)} | {"m" + a: s["m" + b] for a, b in zip(A, B)}
    yield "switch", And(done, pc <= PHASE), dict(renamed | fresh, next=NONE, grows=False, fill1=-1, fill2=-1)
    yield "switch, while an operation holds A", And(done, pc > PHASE), dict(over=True)
    yield "end: the phase becomes even", And(odd, Or(s.next == NONE, And(s.over, Not(s.later)))), ends
    yield "lookup: read the phase", pc == OUT, dict(pc=PHASE, writes=False, both=False, p0=phase, odd0=odd)
    yield "writer: read the phase", pc == OUT, dict(pc=PHASE, writes=True, both=False, p0=phase, odd0=odd)
    yield "read the current table", pc == PHASE, dict(pc=If(s.odd0, HOLDS, TABLES))
    yield "read the next table: none", And(pc == HOLDS, Or(s.next == NONE, And(s.over, phase > s.p0))), dict(pc=TABLES)
    yield "read the next table", And(pc == HOLDS, s.next == NEXT), dict(pc=TABLES, both=True)
    yield "lookup: read the version", And(pc == TABLES, Not(writes)), dict(pc=BEGUN, v0=V)
    looks = dict(pc=BEGUN, h=LOOKING, least=N, most=N, seen=0)
    yield "writer: lock, and split both", And(pc == TABLES, writes, h == FREE, Or(Not(both), fault == "WriterBringsNothing", brought)), looks
    in_one, too_early, last = And(two, s.grows), fault == "LookupTooEarly", If(both, pc == READ_B2, pc == READ_A2)
    def found(cell, otherwise):
        return If(And(s[cell] > 0, Not(writes)), PRESENT, otherwise)
    seen = {cell: dict(seen=If(writes, s.seen + s[cell], 0)) for cell in CELLS}
    again = lambda marked: If(Or(marked, too_early), ALL, READ_B2)
    yield "lookup: read A1 alone", And(in_one, pc == BEGUN), dict(pc=found(A1, ONE), read1=s.mA1)
    yield "lookup: read B1 alone, since A1 is marked", And(in_one, pc == BEGUN, s.mA1), dict(pc=found(B1, ONE), read1=False)
    yield "lookup: read A2 alone", pc == ONE, dict(pc=found(A2, again(Or(s.read1, s.mA2))))
    yield "lookup: read B2 alone, since A2 is marked", And(pc == ONE, s.mA2), dict(pc=found(B2, again(s.read1)))
    yield "read A1", Or(pc == ALL, And(pc == BEGUN, Not(in_one))), dict(seen[A1], pc=found(A1, READ_A1), read1=Or(Not(s.grows), s.mA1, too_early))
    yield "read A2", pc == READ_A1, dict(seen[A2], pc=found(A2, READ_A2), read2=Or(Not(s.grows), s.mA2, too_early))
    yield "read B1", And(both, pc == READ_A2), dict(seen[B1], pc=If(s.read1, found(B1, READ_B1), READ_B1))
    yield "read B2", pc == READ_B1, dict(seen[B2], pc=If(s.read2, found(B2, READ_B2), READ_B2))
    undisturbed = True if fault == "LookupWithoutVersion" else V == s.v0
    off = And(writes, Or(s.seen < s.least, s.seen > s.most))
    ignores = {"LookupIgnoresNext": And(Not(writes), Not(s.odd0)), "LookupIgnoresLaterNext": two, "WriterIgnoresLaterNext": And(both, writes)}
    same = Or(phase == s.p0, ignores.get(fault, False))
    yield "lookup: read the version again", And(last, Not(writes), undisturbed), dict(pc=ASKED)
    yield "writer: unlock", And(last, writes), dict(pc=ASKED, h=FREE)
    yield "insert_if_absent: read the phase again, before it adds", And(last, writes, same), dict(pc=ABSENT, h=HELD, off=off)
    yield "read the phase again, answer", And(pc == ASKED, same), dict(pc=ABSENT, off=off)

def filled(s, b):
    """The copies in a bucket of `B`. What a split has stored there does not count before the mark."""
    a, fill = (A1, s.fill1) if b == B1 else (A2, s.fill2)
    return s[b] - If(And(s.grows, Not(s["m" + a]), fill >= 0), If(s[b] < fill, s[b], fill), 0)

def watch(s, t):
    """Whether the class was out, and whether it was in, at a moment of the call; the least and the most copies in it."""
    looks, live = And(t.pc >= BEGUN, t.pc <= ASKED), t.N - one_if(t.h == REMOVING)  # out from the bump on
    extremes = dict(least=If(And(looks, t.N < t.least), t.N, t.least), most=If(And(looks, t.N > t.most), t.N, t.most))
    return dict(extremes, gone=Or(t.gone, And(looks, live <= 0)), ever=Or(t.ever, And(t.pc >= BEGUN, t.N > 0)))

def invariant(s):
    h, pc, V, src, dst, undoes, writes, both, odd = s.h, s.pc, s.V, s.src, s.dst, s.undoes, s.writes, s.both, s.odd
    begins, amid, over, later, grows = h == BEGINNING, s.next == NEXT, s.over, s.later, s.grows
    moving, same, alone = Or(h == PUT, h == BUMPED), s.phase == s.p0, Not(both)
    holds_b, reads = And(both, pc >= TABLES, pc <= ASKED), And(pc >= BEGUN, pc <= READ_B2)
    inside = lambda number, cells: Or(*[number == NUMBER[cell] for cell in cells])
    at = lambda number: sum(If(number == NUMBER[cell], s[cell], 0) for cell in CELLS)
    shape = [
        *[s[name] >= 0 for name in (*CELLS, "N", "phase", "next", "src", "dst", "pc", "h")],
        s.next <= OTHER, pc <= PRESENT, h <= BEGINNING, h != TAKEN, s.late == -1,
        Implies(pc <= PHASE, And(Not(over), s.next != OTHER, src <= 3, dst <= 3)),
        # The phase is odd from the beginning of a resize until all is in one table, and it is the current one.
        Implies(begins, And(amid, Not(over), Not(undoes), Not(odd), Not(s.mA1), Not(s.mA2), s[B1] == 0, s[B2] == 0)),
        Implies(And(Not(odd), s.next != NONE), Or(begins, And(over, Not(later)))),
        Implies(over, And(amid, Not(undoes), s.mA1, s.mA2)), Implies(later, over),
        Implies(s.next == OTHER, And(both, pc >= TABLES)), Implies(Not(Or(later, s.next == OTHER)), s[E] == 0),
        Implies(undoes, And(amid, Not(grows), Not(over))), Implies(grows, amid),
        Implies(s.next == NONE, And(Not(s.mA1), Not(s.mA2))), Implies(Not(amid), And(s[B1] == 0, s[B2] == 0)),
        Implies(And(amid, Not(undoes), Not(later)), And(Not(s.mB1), Not(s.mB2))),
        *[Implies(s["m" + cell], s[cell] == 0) for cell in A + B],
    ]
    for a, b, fill in ((A1, B1, "fill1"), (A2, B2, "fill2")):
        shape += [s[fill] >= -1, Implies(s[fill] >= 0, And(grows, Not(begins), Not(s["m" + a]), s[b] == s[fill]))]
        shape.append(Implies(And(grows, Not(s["m" + a]), s[fill] < 0), s[b] == 0))
    split = Or(Not(grows), And(s.mA1, s.mA2))
    in_a = And(inside(src, A), inside(dst, A), Or(s.next == NONE, undoes))
    in_b = And(inside(src, B), inside(dst, B), amid, Not(undoes), Not(later), split)
    forth = And(inside(src, A), inside(dst, B), amid, Not(grows), Not(over), Not(undoes))
    back = And(inside(src, B), inside(dst, A), undoes)
    with_e = And(Or(And(inside(src, B), dst == NUMBER[E]), And(src == NUMBER[E], inside(dst, B))), later, Not(s.later_grows))
    holder = [
        Implies(moving, And(at(src) >= 1, at(dst) >= 1, src != dst, Or(in_a, in_b, forth, back, with_e))),
        Implies(h == REMOVING, And(src <= 4, at(src) >= 1, Implies(inside(src, B), split))),
        (h == LOOKING) == And(writes, reads), Implies(And(h == LOOKING, both), split), total(s) == s.N,
    ]
    # What an operation has yet to read. In a growth a lookup reads a bucket of `B` only if it found that of `A` marked.
    unread = {A1: Or(pc == BEGUN, pc == ALL), A2: pc <= READ_A1, B1: And(both, Or(pc == BEGUN, pc == ALL, And(pc > ALL, pc < READ_B1, Or(writes, s.read1))))}
    unread[B2] = And(both, pc < READ_B2, Or(pc <= READ_A1, writes, s.read2))
    yet = sum(If(unread[cell], filled(s, cell) if cell in B else s[cell], 0) for cell in A + B)
    src_unread, dst_unread = (Or(*[And(number == NUMBER[cell], unread[cell]) for cell in A + B]) for number in (src, dst))
    # A copy that a lookup has yet to read, and that nobody takes without another bump.
    covered = And(
        yet - one_if(Or(h == BUMPED, h == REMOVING)) >= 1, Implies(h == BUMPED, And(src_unread, dst_unread)),
        Implies(h == REMOVING, src_unread),
    )
    # A writer has seen, or is yet to see, all that was there when it began, and not more than there is.
    counted, right = And(s.seen + yet >= s.least, s.seen + yet <= s.N), And(s.least <= s.seen, s.seen <= s.most)
    undisturbed = And(Not(writes), V == s.v0, same, Not(s.gone), Not(And(pc == ONE, s.read1)))
    look = [
        Implies(pc >= PHASE, s.p0 <= s.phase), Implies(And(pc >= BEGUN, Not(writes)), s.v0 <= V),
        Implies(And(pc >= PHASE, same), odd == s.odd0), Implies(And(pc >= HOLDS, same, Not(odd)), Not(over)),
        Implies(both, And(pc >= TABLES, s.odd0)), Implies(pc == HOLDS, s.odd0), Implies(pc == ONE, And(both, Not(writes), grows)),
        Implies(And(writes, reads), pc != ALL), Implies(And(alone, reads), Or(pc == BEGUN, pc == READ_A1, pc == READ_A2)),
        # An operation that has one table has all, until the phase changes, and one that has two likewise.
        Implies(And(pc >= PHASE, same), And(Not(later), s.next != OTHER)),
        Implies(And(alone, pc >= TABLES, same), Or(s.next == NONE, begins)),
        Implies(And(pc >= READ_A1, pc <= READ_B1, s.read1, both), Or(Not(grows), s.mA1)),
        Implies(And(pc >= READ_A2, pc <= READ_B1, s.read2, both), Or(Not(grows), s.mA2)),
        Implies(And(pc == ONE, s.read1), s.mA1), Implies(holds_b, Or(amid, And(s.mB1, s.mB2, Not(grows)))),
        Implies(And(reads, undisturbed), covered), Implies(And(pc == ASKED, Not(writes), same), s.gone),
        Implies(And(pc == ABSENT, Not(writes)), s.gone),
        Implies(And(reads, writes, same), counted), Implies(And(pc == ASKED, writes, same), right),
        Implies(And(writes, pc >= BEGUN, pc <= ASKED), And(s.least <= s.N, s.N <= s.most)),
        Not(s.off), Implies(pc == PRESENT, And(s.ever, Not(writes))),
    ]
    return shape + holder + look

def total(s):
    return s[A1] + s[A2] + filled(s, B1) + filled(s, B2) + s[E] - one_if(Or(s.h == PUT, s.h == BUMPED))

def wrong(s):
    return {
        "a copy is lost or doubled": total(s) != s.N,
        "the lookup missed a copy": And(s.pc == ABSENT, Not(s.writes), Not(s.gone)),
        "the writer miscounts": s.off,
        "the lookup found what was not there": And(s.pc == PRESENT, Not(s.ever)),
    }
