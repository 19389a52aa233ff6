"""A save has what was in at its moment, each copy once (`src/table/image/copy_on_write.rs`).

One class and its two buckets, and one save, of which they are two chunks. The image may have more only by inserts that
had begun before the moment: `over` counts those. Whoever is to change a word waits until it is `kept`: copied, or
passed. Copying it is one step, since it is done under the lock of the list; any thread may take it.
"""
from prover import And, If, Implies, Not, Or

PROMISE = "a save has each copy of its moment exactly once, and else only inserts that overlap its beginning"
CONTROLS = "SaveWithoutLocks SaveLocksInTurn SaveReadsAfterPassing CopiesLatestWord SplitCopiesNothing RemoveCopiesNothing".split()
CONTROLS += "InsertCopiesNothing RelocateCopiesNoSource RelocateCopiesNoTarget RelocateCopiesTargetLate".split()
# What the holder of the class's lock does.
FREE, HELD, REMOVING, PUT = range(4)
# The save: not begun, in the list, and at or after its moment.
NO, LISTED, BEGUN = range(3)
START = dict(F=0, S=0, h=FREE, src=0, save=NO, over_F=0, over_S=0)
START |= dict(at_F=0, at_S=0, copied_F=-1, copied_S=-1, read_F=-1, read_S=-1, image_F=-1, image_S=-1, moved_F=False, moved_S=False)
MOST = dict(F=2, S=2)

def kept(s, x):
    return Or(s.save == NO, s["copied_" + x] >= 0, s["image_" + x] >= 0)

def steps(s, fault):
    h, save = s.h, s.save
    yield "lock", h == FREE, dict(h=HELD)
    yield "unlock", h == HELD, dict(h=FREE)
    moment = dict(save=BEGUN, at_F=s.F, at_S=s.S)
    if fault == "SaveLocksInTurn":
        yield "save: join the list", save == NO, dict(save=LISTED)
        yield "save: pass through the locks", And(save == LISTED, h == FREE), moment
    else:
        yield "save: begin, under all locks", And(save == NO, True if fault == "SaveWithoutLocks" else h == FREE), moment
    for number, (x, y) in enumerate(("FS", "SF")):
        unless = lambda left_out, bucket=x: True if fault == left_out else kept(s, bucket)
        free = And(Not(s["moved_" + x]), save != LISTED)
        yield f"insert into {x}", And(free, unless("InsertCopiesNothing")), {x: s[x] + 1}
        yield f"insert into {x} that began before the save", And(free, save == BEGUN), {x: s[x] + 1, "over_" + x: s["over_" + x] + 1}
        yield f"removal from {x}: find", And(h == HELD, s[x] > 0, save != LISTED, unless("RemoveCopiesNothing")), dict(h=REMOVING, src=number)
        yield f"removal from {x}: take", And(h == REMOVING, save != LISTED, s.src == number), {x: s[x] - 1, "h": HELD}
        late = fault == "RelocateCopiesTargetLate"
        both = And(unless("RelocateCopiesNoSource"), unless("RelocateCopiesTargetLate" if late else "RelocateCopiesNoTarget", y))
        yield f"relocation from {x}: put", And(h == HELD, s[x] > 0, Not(s["moved_" + y]), both), {y: s[y] + 1, "h": PUT, "src": number}
        yield f"relocation from {x}: take", And(h == PUT, s.src == number, kept(s, y) if late else True), {x: s[x] - 1, "h": HELD}
        held = And(h != FREE, h != HELD, Or(h == PUT, s.src == number))
        # The bucket is split or merged. From then on its word is that of other classes.
        yield f"resize: store the word of {x}", And(save == BEGUN, free, Not(held), unless("SplitCopiesNothing")), {x: 0, "moved_" + x: True}
        again = True if fault == "CopiesLatestWord" else s["copied_" + x] < 0
        yield f"copy {x}", And(save != NO, s["image_" + x] < 0, again), {"copied_" + x: s[x]}
        read, image = s["read_" + x], If(s["copied_" + x] >= 0, s["copied_" + x], s["read_" + x])
        if fault == "SaveReadsAfterPassing":
            yield f"save: pass {x}", And(save == BEGUN, s["image_" + x] < 0), {"image_" + x: If(image < 0, 9, image)}
            yield f"save: read {x} after that", s["image_" + x] == 9, {"image_" + x: s[x]}
        else:
            yield f"save: read {x}", And(save == BEGUN, s["image_" + x] < 0), {"read_" + x: s[x]}
            yield f"save: pass {x}", And(read >= 0, s["image_" + x] < 0), {"image_" + x: image}

def invariant(s):
    h, save, src = s.h, s.save, s.src
    claims = [h >= FREE, h <= PUT, Or(save == NO, save == BEGUN), src >= 0, src <= 1]
    for number, x in enumerate("FS"):
        low, copied, read, image = (s[name + x] for name in ("at_", "copied_", "read_", "image_"))
        right = lambda word: And(low <= word, word <= low + s["over_" + x])
        claims += [
            s[x] >= 0, s["over_" + x] >= 0, low >= 0, Implies(s["moved_" + x], And(s[x] == 0, save == BEGUN)),
            Implies(And(Or(h == REMOVING, h == PUT), src == number), And(s[x] >= 1, kept(s, x))),
            Implies(And(h == PUT, src != number), kept(s, x)), Implies(save == NO, And(copied < 0, read < 0, image < 0)),
            # Until a word is kept, nothing has happened to it but inserts that overlap the beginning.
            Implies(Not(kept(s, x)), right(s[x])), Implies(copied >= 0, right(copied)),
            Implies(And(read >= 0, copied < 0), right(read)), Implies(image >= 0, right(image)),
        ]
    return claims

def wrong(s):
    image, moment = s.image_F + s.image_S, s.at_F + s.at_S
    whole = And(s.image_F >= 0, s.image_S >= 0, s.image_F != 9, s.image_S != 9)
    return {
        "the image lacks a copy": And(whole, image < moment),
        "the image has a copy too many": And(whole, image > moment + s.over_F + s.over_S),
    }
