//! A filter that grows and shrinks: saves meanwhile, and what loom cannot show (it forgets a load of a word after another
//! thread's load of it).

use std::sync::Arc;

use ccf_steps::model::{Growable, GrowableKey};

use crate::common::{Job, job, on_shuttle_threads};

/// A filter of so many buckets, and a key in it that the next split moves.
fn filter(buckets: usize) -> (Arc<Growable>, GrowableKey) {
    let (filter, x) = (Growable::of_buckets(buckets), GrowableKey::new(6, 7, 0));
    filter.place(x, false);
    (Arc::new(filter), x)
}

fn role(filter: &Arc<Growable>, run: impl FnOnce(&Growable) + Send + 'static) -> Job {
    let filter = Arc::clone(filter);
    job(move || run(&filter))
}

fn finds(filter: &Arc<Growable>, x: GrowableKey) -> Job {
    role(filter, move |filter| assert!(filter.contains(x), "a present key was missed"))
}

/// `x` is moved from the bucket that a lookup reads last to the one that it reads first, and a split moves it on.
fn a_relocation_beside_a_split() {
    let (filter, x) = (Arc::new(Growable::of_buckets(2)), GrowableKey::new(6, 7, 0));
    filter.place(x, true);
    let mover = role(&filter, move |filter| assert!(filter.relocate(x, true), "no other thread moves it"));
    on_shuttle_threads(vec![finds(&filter, x), mover, role(&filter, Growable::split)]);
}

/// While a lookup sleeps, a bucket is split and merged again: the state is the same, and the epoch is not.
fn a_state_that_comes_round() {
    let (filter, x) = filter(2);
    let resizer = role(&filter, |filter| {
        filter.split();
        filter.merge();
    });
    on_shuttle_threads(vec![finds(&filter, x), resizer]);
}

/// A save begins before, amid or after a split and a merge.
fn a_save_among_resizes() {
    let (filter, x) = filter(3);
    let saver = role(&filter, move |filter| {
        let loaded = filter.save_and_load(|| ());
        assert!(loaded.contains(x) && loaded.count(x) == 1, "a present key is not in the snapshot");
    });
    let resizer = role(&filter, |filter| {
        filter.merge();
        filter.split();
        filter.split();
    });
    on_shuttle_threads(vec![saver, resizer]);
}

/// Tests that a scene holds, and that it fails with each of the injected faults.
macro_rules! scene_of_several {
    ($name:ident, fails with $message:literal for [$($fault:ident),+]) => {
        mod $name {
            use ccf_steps::model::{Fault, Seeded};

            use crate::common::{scaled, under_schedules};

            #[test]
            fn holds() {
                under_schedules(0, scaled(300, "CCF_SCHEDULES"), super::$name);
            }

            $(#[test]
            #[allow(non_snake_case)]
            #[should_panic(expected = $message)]
            fn $fault() {
                let _seeded = Seeded::bugs(&[Fault::$fault]);
                under_schedules(0, 100_000, super::$name);
            })+
        }
    };
}

scene_of_several! {
    a_relocation_beside_a_split,
    fails with "a present key was missed"
    for [LookupWithoutVersion, RelocateWithoutBump, RelocateClearsFirst, LookupWithoutEpoch]
}
scene_of_several! {
    a_state_that_comes_round,
    fails with "a present key was missed" for [LookupWithoutEpoch, LookupIgnoresMoving, SplitsUnannounced]
}
scene_of_several! {
    a_save_among_resizes,
    fails with "snapshot" for [SplitSetsNothingAside]
}
