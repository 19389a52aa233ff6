"""What the models share: proofs by z3, and a search for schedules. A model is a module with

- `PROMISE`, in a sentence; `START`: the variables, each with its value for an empty table;
- `steps(s, fault)`: the steps that any thread may take in a state `s`: a name, a condition, and what changes;
- `watch(s, t)`, if it is needed: what an observer notes at a step from `s` to `t`. No thread reads these variables;
- `invariant(s)`: what holds in every state; `wrong(s)`: how the promise may be broken;
- `CONTROLS`: faults of `tests/controls` that `steps` knows;
- `MOST`: how far the numbers go in a search.

The proof: the invariant holds at the start, each step keeps it, and it excludes `wrong`, over integers without bounds. A
control has to fail twice: a step breaks the invariant, and there is a schedule from the empty table to `wrong`.
"""
from z3 import *

class State(dict):
    """The variables by their names: `s.F` is `s["F"]`."""
    __getattr__ = dict.__getitem__

def variables(model):
    return State({name: (Bool if isinstance(value, bool) else Int)(name) for name, value in model.START.items()})

def one_if(condition):
    return If(condition, 1, 0)

def after(model, s, changes):
    """The state after a step, as expressions of the one before."""
    t = State(s | changes)
    return State(t | model.watch(s, t)) if hasattr(model, "watch") else t

def what_is_not_proved(model, fault=None):
    """The steps that do not keep the invariant, or let the promise be broken. For a fault, of those that it changes."""
    def key(step):  # z3 keeps each expression once
        return step[0], *((x.get_id() if is_expr(x) else x) for x in (step[1], *step[2].values()))
    s = variables(model)
    intact, steps, invariant = list(model.steps(s, None)), list(model.steps(s, fault)), And(*model.invariant(s))
    known = {key(step) for step in intact} if fault else ()
    claims = [(step[0], And(step[1], invariant), after(model, s, step[2])) for step in steps if key(step) not in known]
    if not fault:
        claims.append(("the start", And(*[s[name] == value for name, value in model.START.items()]), s))
    not_kept = []
    for name, before, t in claims:
        solver = Solver()
        solver.add(before, Not(And(*model.invariant(t), *[Not(how) for how in model.wrong(t).values()])))
        if solver.check() != unsat:
            not_kept.append(name)
    return not_kept

def as_python(e):
    """An expression in Python's words."""
    if not is_expr(e):
        return repr(e)
    e, kind = simplify(e), simplify(e).decl().kind()
    parts = [as_python(part) for part in e.children()]
    if kind == Z3_OP_ITE:
        return "({1} if {0} else {2})".format(*parts)
    if kind == Z3_OP_NOT:
        return f"(not {parts[0]})"
    word = {Z3_OP_AND: "and", Z3_OP_OR: "or", Z3_OP_EQ: "==", Z3_OP_TRUE: "True", Z3_OP_FALSE: "False"}.get(kind, e.decl().name())
    return f"({f' {word} '.join(parts)})" if parts else str(e) if kind == Z3_OP_ANUM else word

def compiled(model, fault):
    """The names of the steps; a function from a state to the steps that are possible, each with the state after it; and
    one that says how a state breaks the promise. They are compiled, since a search calls them a million times."""
    s, names = variables(model), []
    too_far = " or ".join(f"{name} > {most}" for name, most in model.MOST.items())
    code = ["def ways(state):", f" {', '.join(s)}, = state", f" if {too_far}: return"]
    for name, guard, changes in model.steps(s, fault):
        new = ", ".join(as_python(x) for x in after(model, s, changes).values())
        code.append(f" if {as_python(And(guard, BoolVal(True)))}: yield {len(names)}, ({new},)")
        names.append(name)
    code += ["def wrong(state):", f" {', '.join(s)}, = state"]
    code += [f" if {as_python(condition)}: return {how!r}" for how, condition in model.wrong(s).items()]
    scope = {}
    exec("\n".join(code), scope)
    return names, scope["ways"], scope["wrong"]

def search(model, fault=None):
    """The shortest run to a broken promise, in words, or None; and the steps that no run takes."""
    names, ways, wrong = compiled(model, fault)
    start = tuple(model.START.values())
    came_from, reached, taken = {start: None}, [start], set()
    for state in reached:
        for number, new in ways(state):
            taken.add(number)
            if new not in came_from:
                came_from[new] = state, number
                reached.append(new)
                if how := wrong(new):
                    run = [how]
                    while came_from[new]:
                        new, number = came_from[new]
                        run.insert(0, names[number])
                    return run, []
        if not fault and len(taken) == len(names):
            break
    return None, [name for number, name in enumerate(names) if number not in taken]
