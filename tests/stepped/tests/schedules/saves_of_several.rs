//! A save of a filter of several tables, while a key changes from one table to another.

use std::sync::Arc;

use ccf_steps::model::{Fault, Growable, GrowableKey, Seeded};

use crate::common::{job, on_shuttle_threads, scaled, under_schedules};

/// Runs a scene under many schedules, with these steps left out.
fn play(scene: fn(), faults: &'static [Fault]) {
    under_schedules(0, scaled(300, "CCF_SCHEDULES"), move || {
        let _seeded = Seeded::bugs(faults);
        scene();
    });
}

/// The newest table is full. A key gets a copy in the older table, and then loses the copy in the newest. It is in
/// throughout.
fn a_key_changes_to_the_older_table() {
    let [x, others @ ..] = [0, 1, 2, 3].map(|nth| GrowableKey::new(0, nth));
    let filter = Arc::new(Growable::new());
    filter.grow();
    filter.place(1, x);
    others.into_iter().for_each(|other| filter.place(1, other));
    let changed = Arc::clone(&filter);
    on_shuttle_threads(vec![
        job(move || assert!(filter.save_and_load(|| ()).contains(x), "a present key is not in the snapshot")),
        job(move || {
            changed.insert(x).expect("the older table has room");
            assert!(changed.remove(x), "a present key was not removed");
        }),
    ]);
}

#[test]
fn a_key_that_changes_to_the_older_table_is_in_the_snapshot() {
    play(a_key_changes_to_the_older_table, &[]);
}

#[test]
#[should_panic(expected = "a present key is not in the snapshot")]
fn without_the_order_of_the_tables_it_is_not() {
    play(a_key_changes_to_the_older_table, &[Fault::SaveOldestFirst]);
}
