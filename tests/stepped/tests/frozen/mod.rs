//! Threads that stop in the middle of an operation, for a while or for good. Each test stops a thread before each of
//! its steps in turn.
//!
//! - `one_table`: a table of a fixed size, also with a clock;
//! - `growable`: a filter that grows and shrinks.

mod growable;
mod one_table;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::thread;

use ccf_steps::model::{Fault, Step, before_each_step, inject};

/// An operation that is stopped, and what it is done to.
pub(crate) struct Act<S> {
    pub(crate) scene: fn() -> S,
    pub(crate) operation: fn(&S),
}

/// Where a thread has stopped.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "failures print all of it")]
pub(crate) struct Stop {
    /// How many steps it has taken.
    nth: usize,
    /// How many locks it holds.
    pub(crate) locks: usize,
}

impl<S: Sync> Act<S> {
    /// Runs it on a thread that stops before each of its steps in turn, each time with a new scene. Meanwhile calls
    /// `meanwhile`. Then the thread continues. At the end calls `finally`.
    pub(crate) fn stopped(&self, faults: &[Fault], meanwhile: impl Fn(Stop, &S), finally: impl Fn(&S)) {
        let mut nth = 0;
        while {
            let scene = (self.scene)();
            let stopped = self.stopped_before(nth, faults, &scene, |stop| meanwhile(stop, &scene));
            if stopped {
                finally(&scene);
            }
            stopped
        } {
            nth += 1;
        }
        assert!(nth > 3, "the operation has steps");
    }

    /// `false` if it has fewer steps.
    fn stopped_before(&self, nth: usize, faults: &[Fault], scene: &S, meanwhile: impl FnOnce(Stop)) -> bool {
        let (stops, stopped) = channel();
        let (lets_go, let_go) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                inject(faults);
                before_step(nth, move |stop| {
                    stops.send(stop).expect("the other thread waits for this");
                    // Until the other end is dropped.
                    _ = let_go.recv();
                });
                (self.operation)(scene);
                before_each_step(None);
            });
            let stop = stopped.recv().ok();
            let has_stopped = stop.map(meanwhile).is_some();
            drop(lets_go);
            has_stopped
        })
    }

    /// A thread dies before each of its steps in turn, each time with a new scene. Then calls `finally`.
    pub(crate) fn dies(&self, finally: impl Fn(Stop, &S)) {
        let mut nth = 0;
        while {
            let (scene, stopped) = ((self.scene)(), Rc::new(Cell::new(None)));
            let at = Rc::clone(&stopped);
            before_step(nth, move |stop| {
                at.set(Some(stop));
                resume_unwind(Box::new("this thread dies"));
            });
            let died = catch_unwind(AssertUnwindSafe(|| (self.operation)(&scene))).is_err();
            before_each_step(None);
            assert_eq!(died, stopped.get().is_some(), "the operation failed by itself");
            stopped.get().into_iter().for_each(|stop| finally(stop, &scene));
            died
        } {
            nth += 1;
        }
        assert!(nth > 3, "the operation has steps");
    }
}

/// Does `at` before the `nth` step of this thread.
fn before_step(nth: usize, at: impl Fn(Stop) + 'static) {
    let (taken, locks) = (Cell::new(0), Cell::new(0));
    before_each_step(Some(Rc::new(move |step| {
        if taken.replace(taken.get() + 1) == nth {
            at(Stop { nth, locks: locks.get() });
        }
        match step {
            Step::Lock => locks.set(locks.get() + 1),
            Step::Unlock => locks.set(locks.get() - 1),
            _ => (),
        }
    })));
}

/// Whether the operation waits for a lock. If it does, it is not carried out.
pub(crate) fn waits(operation: impl FnOnce()) -> bool {
    struct Waits;
    before_each_step(Some(Rc::new(|step| {
        if step == Step::Wait {
            resume_unwind(Box::new(Waits));
        }
    })));
    let result = catch_unwind(AssertUnwindSafe(operation));
    before_each_step(None);
    match result {
        Ok(()) => false,
        Err(panic) if panic.is::<Waits>() => true,
        Err(panic) => resume_unwind(panic),
    }
}
