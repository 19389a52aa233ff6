"""Proves every model, shows that each control fails, and that the table of steps has all of them: see `README.md`."""
import re, sys, time
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

from prover import get_version_string, search, variables, what_is_not_proved

HERE = Path(__file__).resolve().parent
CONTROLS = HERE.parent / "controls/src/table.rs"
MODELS = {name: import_module(name) for name in "absent growth copies save values".split()}

def attempt(name, fault):
    """Proves a model, or shows that it fails with a fault. Returns whether that is so, and lines about it."""
    model, began = MODELS[name], time.time()
    broken, (run, not_taken) = what_is_not_proved(model, fault), search(model, fault)
    took, schedule = f" ({time.time() - began:.1f} s)", "; ".join(run or ["none is found"])
    if fault:
        return bool(run and broken), [f"  {fault}: {'' if broken else 'THE INVARIANT IS KEPT; '}{schedule}{took}"]
    is_well = not (broken or run or not_taken)
    lines = [f"{name} {'is proved' if is_well else 'IS NOT PROVED'}: {model.PROMISE}{took}. Without a step of it:"]
    lines += [f"    NOT KEPT by: {step}" for step in broken] + [f"    NEVER TAKEN: {step}" for step in not_taken]
    return is_well, lines + ([f"    WRONG: {schedule}"] if run else [])

def complaints():
    """What is wrong with the table of steps, and with the names of the faults."""
    rows = [re.split(r"\s*(?<!\\)\|\s*", line)[1:-1] for line in (HERE / "steps.md").read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if len(row) == 4][1:]
    faults = re.findall(r'\bcontrol\(\s*"(\w+)"', CONTROLS.read_text())
    for name, model in MODELS.items():
        steps = [step for step, _, _ in model.steps(variables(model), None)]
        patterns = [pattern.strip("`").split(" or ") for models, pattern, *_ in rows if name in models.split()]
        yield from (f"{name}: no fault {fault}" for fault in model.CONTROLS if fault not in faults)
        yield from (f"{name}: no row for: {step}" for step in steps if not any(fnmatchcase(step, p) for row in patterns for p in row))
        yield from (f"{name}: no step like: {row}" for row in patterns if not any(fnmatchcase(step, p) for step in steps for p in row))

if __name__ == "__main__":
    began, jobs = time.time(), [(name, fault) for name, model in MODELS.items() for fault in (None, *model.CONTROLS)]
    wrong = list(complaints())
    print("z3 " + get_version_string(), *wrong, sep="\n")
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(attempt, *zip(*jobs)))
    for _, lines in results:
        print(*lines, sep="\n")
    well = not wrong and all(is_well for is_well, _ in results)
    print(f"{'All is well' if well else 'FAILED'}: {len(MODELS)} models, {len(jobs) - len(MODELS)} controls, {time.time() - began:.0f} s")
    sys.exit(not well)
