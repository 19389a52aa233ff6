//! Injected faults: each step of the protocol that the proofs rely on can be left out.
//!
//! A model proves nothing unless it fails when the step it is about is missing. `tests/controls/src/table.rs` has the
//! steps, and puts a query of [`injected`] into each.

include!(concat!(env!("OUT_DIR"), "/faults.rs"));

std::thread_local! {
    /// One bit for each fault that is switched on.
    static INJECTED: core::cell::Cell<u128> = const { core::cell::Cell::new(0) };
}

/// Whether `fault` is switched on in this model.
///
/// loom and shuttle run all threads of a model on the thread that started it. So a thread-local reaches all of them,
/// and no other model that runs at the same time. A model of real threads switches the fault on in each thread.
pub(crate) fn injected(fault: Fault) -> bool {
    INJECTED.get() & 1 << fault as u64 != 0
}

/// From here on, switches these faults on and all others off, for this thread and the models that it runs.
pub fn inject(faults: &[Fault]) {
    INJECTED.set(faults.iter().fold(0, |bits, &fault| bits | 1 << fault as u64));
}

/// Faults that are switched on for this thread until this value is dropped.
#[derive(Debug)]
pub struct Seeded(());

impl Seeded {
    /// Switches these faults on.
    pub fn bugs(faults: &[Fault]) -> Self {
        inject(faults);
        Self(())
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        inject(&[]);
    }
}
