//! Filters that grow and shrink: saves meanwhile, and what loom cannot show (it forgets a load of a word after another
//! thread's load of it).

use std::sync::Arc;

use ccf_steps::model::{Growable, GrowableKey};

use crate::common::{Job, job, on_shuttle_threads};

/// A filter that has grown this many times, and a key in it.
fn filter(growths: usize) -> (Arc<Growable>, GrowableKey) {
    let (filter, x) = (Growable::new(), GrowableKey::new(0, 4, 0));
    (0..growths).for_each(|_| filter.grow());
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

/// `x` is moved within the larger table, from the bucket that a lookup reads last to the one that it reads first.
fn a_relocation_amid_a_growth() {
    let (filter, x) = (Arc::new(Growable::new()), GrowableKey::new(0, 4, 0));
    filter.place(x, true);
    filter.begin_growth();
    filter.help();
    let mover = role(&filter, move |filter| assert!(filter.relocate(x, true), "no other thread moves it"));
    on_shuttle_threads(vec![finds(&filter, x), mover]);
}

/// A shrink is undone, and the next one moves the key to yet another table.
fn two_shrinks() {
    let (filter, x) = filter(1);
    let shrinker = role(&filter, |filter| {
        filter.shrink_in_vain();
        filter.shrink();
    });
    on_shuttle_threads(vec![finds(&filter, x), shrinker]);
}

/// A save begins before or amid a growth and a shrink.
fn a_save_among_resizes() {
    let (filter, x) = filter(1);
    let saver = role(&filter, move |filter| {
        let loaded = filter.save_and_load(|| ()).expect("a table can be saved");
        assert!(loaded.contains(x), "a present key is not in the snapshot");
    });
    let resizer = role(&filter, |filter| {
        filter.grow();
        filter.shrink();
    });
    on_shuttle_threads(vec![saver, resizer]);
}

/// Tests that a scene holds, and that it fails with each of the seeded bugs.
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
    a_relocation_amid_a_growth,
    fails with "a present key was missed" for [LookupWithoutVersion, RelocateWithoutBump]
}
scene_of_several! {
    two_shrinks,
    fails with "a present key was missed" for [LookupIgnoresLaterNext]
}
scene_of_several! {
    a_save_among_resizes,
    fails with "snapshot" for [SplitSetsNothingAside]
}
