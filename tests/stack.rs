//! The stack that operations need. Each runs on a thread with a small stack, in a process of its own, because an
//! overflow ends the process. (A build without optimizations, `CARGO_PROFILE_TEST_OPT_LEVEL=0`, needs the most.)

#![cfg(not(miri))]

use std::hint::black_box;
use std::process::{Command, Stdio};
use std::thread;

#[path = "support/kinds.rs"]
mod kinds;
#[path = "support/operations.rs"]
#[allow(unreachable_pub, reason = "`allocation.rs` has it too")]
mod operations;
mod support;

use operations::{OPERATIONS, Operation};

/// The stack on which every operation runs, in bytes.
const ENOUGH: usize = 64 << 10;

/// The smallest stack that any system gives a thread (AArch64's). So each thread gets this much more, and uses it
/// up first.
const BALLAST: usize = 128 << 10;

/// The variables that tell a process its operation, by number, and how many bytes of stack the operation has.
const OPERATION: &str = "CCF_TEST_STACK_OPERATION";
const BYTES: &str = "CCF_TEST_STACK_BYTES";

/// An operation that overflows. It shows that the test notices an overflow.
const TOO_MUCH: Operation = ("too much", false, || Box::new(|| _ = black_box([0u8; ENOUGH])));

/// Whether the operation runs with this many bytes of stack.
fn runs_within(operation: usize, bytes: usize) -> bool {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "runs_one_operation", "--ignored"])
        .env(OPERATION, operation.to_string())
        .env(BYTES, bytes.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    child.unwrap().success()
}

#[test]
#[ignore = "runs in the processes that the other tests start"]
fn runs_one_operation() {
    let number = |name| std::env::var(name).expect("it is set").parse::<usize>().expect("a number");
    let work = OPERATIONS.get(number(OPERATION)).unwrap_or(&TOO_MUCH).2();
    let above = || {
        let mut ballast = [0u8; BALLAST];
        black_box(&mut ballast);
        work();
        black_box(&ballast);
    };
    thread::Builder::new().stack_size(BALLAST + number(BYTES)).spawn(above).unwrap().join().unwrap();
}

#[test]
fn every_operation_runs_on_a_small_stack() {
    for (number, (name, ..)) in OPERATIONS.iter().enumerate() {
        assert!(runs_within(number, ENOUGH), "{name}: {ENOUGH} bytes of stack are not enough, or it has failed");
    }
    let too_much = OPERATIONS.len();
    assert!(runs_within(too_much, 4 * ENOUGH) && !runs_within(too_much, ENOUGH), "an overflow is not noticed");
}
