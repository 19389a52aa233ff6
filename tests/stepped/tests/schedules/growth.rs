//! What loom cannot show of a filter that grows. (It forgets a load of a word after another thread's load of it.)

use std::sync::Arc;

use ccf_steps::model::{Growable, GrowableKey};

use crate::common::{Job, job};
use crate::schedules::scene::scene;

/// `x` is moved from the bucket that a lookup reads last to the one that it reads first, and a split moves it on.
fn a_relocation_beside_a_split() -> Vec<Job> {
    let (filter, x) = (Arc::new(Growable::of_buckets(2)), GrowableKey::new(6, 7, 0));
    filter.place(x, true);
    let [finder, mover, splitter] = [(); 3].map(|()| Arc::clone(&filter));
    vec![
        job(move || assert!(finder.contains(x), "a present key was missed")),
        job(move || assert!(mover.relocate(x, true), "no other thread moves it")),
        job(move || splitter.split()),
    ]
}
scene! {
    a_relocation_beside_a_split,
    fails with "a present key was missed"
    for [LookupWithoutVersion, RelocateWithoutBump, RelocateClearsFirst, LookupWithoutEpoch]
}
