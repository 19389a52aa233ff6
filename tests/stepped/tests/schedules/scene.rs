//! A scene: a table, what each thread does to it, and what must hold; how scenes run, and their controls.

use std::sync::Arc;

use ccf_steps::model::{Key, ModelEntries, ModelLayout, Nothing, Smallest, Table};

use crate::common::{Job, job, on_shuttle_threads};

/// The buckets of the scenes.
pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
pub(crate) const C: usize = 2;
pub(crate) const D: usize = 3;
pub(crate) const E: usize = 4;

/// A table, what each thread does to it, and what must hold after all have ended.
pub(crate) struct Scene<E: ModelEntries = Nothing, L: ModelLayout = Smallest> {
    table: Arc<Table<E, L>>,
    roles: Vec<Job>,
    finally: Finally<E, L>,
}

type Finally<E, L> = Box<dyn FnOnce(&Table<E, L>)>;

impl<E: ModelEntries, L: ModelLayout> Scene<E, L> {
    /// A table of this many buckets, usually of two slots each. Each of these keys is in the first of its buckets.
    pub(crate) fn new(table: Table<E, L>, keys: &[Key]) -> Self {
        let table = Arc::new(table);
        keys.iter().for_each(|&key| table.place(key));
        Self { table, roles: Vec::new(), finally: Box::new(|_| ()) }
    }

    pub(crate) fn role(mut self, run: impl FnOnce(&Table<E, L>) + Send + 'static) -> Self {
        let table = Arc::clone(&self.table);
        self.roles.push(job(move || run(&table)));
        self
    }

    pub(crate) fn finally(self, check: impl FnOnce(&Table<E, L>) + 'static) -> Self {
        Self { finally: Box::new(check), ..self }
    }

    /// Checks that at the end each key is in the table this many times, and that nothing else is.
    pub(crate) fn ends_with(self, keys: Vec<(Key, usize)>) -> Self {
        self.finally(move |table| {
            for &(key, copies) in &keys {
                assert_eq!(table.count(key), copies, "an item was lost or doubled");
            }
            let copies = keys.iter().map(|&(_, copies)| copies).sum::<usize>();
            assert_eq!((table.scan(), table.len()), (copies, copies), "an item was lost or doubled");
        })
    }
}

/// What runs under a schedule.
pub(crate) trait Play {
    fn play(self);
}

impl<E: ModelEntries, L: ModelLayout> Play for Scene<E, L> {
    fn play(self) {
        on_shuttle_threads(self.roles);
        (self.finally)(&self.table);
    }
}

/// Roles that check by themselves what must hold.
impl Play for Vec<Job> {
    fn play(self) {
        on_shuttle_threads(self);
    }
}

/// Tests that a scene passes, and that it fails with each of the seeded bugs. The failure must have the message
/// that names the violation.
macro_rules! scene {
    ($name:ident, $(fails with $message:literal for [$($fault:ident),+]),+) => {
        mod $name {
            use ccf_steps::model::{Fault, Seeded};

            use crate::common::{scaled, under_schedules};
            use crate::schedules::scene::Play;

            #[test]
            fn holds() {
                under_schedules(1, scaled(500, "CCF_SCHEDULES"), || super::$name().play());
            }

            $($(#[test]
            #[allow(non_snake_case)]
            #[should_panic(expected = $message)]
            #[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
            fn $fault() {
                let _seeded = Seeded::bugs(&[Fault::$fault]);
                under_schedules(2, 1_000_000, || super::$name().play());
            })+)+
        }
    };
}
pub(crate) use scene;

/// The keys that a table of six buckets begins with. In this table, an insert into A and B needs a path of three
/// hops: D to E, C to D, B to C.
pub(crate) fn chain() -> [Key; 8] {
    let link = |from, to| Key::new(6, from, to, 0);
    let stay = |one, other, nth| Key::new(6, one, other, nth);
    [stay(A, B, 1), stay(A, B, 2), link(B, C), stay(B, A, 3), link(C, D), stay(C, B, 1), link(D, E), stay(D, C, 1)]
}
