//! Runs models: counts the executions that loom explores, and runs each model again with seeded bugs.

// Each test binary uses a part of this.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ccf_loom::model::{Key, Set};

/// The buckets of most models.
pub const A: usize = 0;
pub const B: usize = 1;
pub const C: usize = 2;
pub const D: usize = 3;
// In a table of six buckets, A and B share no stripe with E and F. (In a table of four, A and B share a stripe with
// C and D.)
pub const E: usize = 4;
pub const F: usize = 5;

/// A role in a model: what one thread does to the table, or to other shared data.
pub type Role<Shared = Set> = Box<dyn FnOnce(&Shared) + Send>;

/// What is shared, what each thread does, and what is checked at the end.
pub type Model<Shared> = (Arc<Shared>, Vec<Role<Shared>>, Role<Shared>);

pub fn role(run: impl FnOnce(&Set) + Send + 'static) -> Role {
    Box::new(run)
}

/// A small table to share. Each of these keys is in the first of its buckets. The `Arc` is that of `std`, because
/// its counts are not part of the protocol.
pub fn table(buckets: usize, keys: &[Key]) -> Arc<Set> {
    let table = Set::new(buckets);
    for &key in keys {
        table.place(key);
    }
    Arc::new(table)
}

/// How many preemptions the executions of a model have at most. With the environment variable `CCF_LOOM_ALL`, which
/// `ci/nightly` sets, a bound that is only for the gate is the other one, if there is one.
pub fn bound(preemptions: usize, for_the_gate: bool, otherwise: Option<usize>) -> Option<usize> {
    if for_the_gate && std::env::var_os("CCF_LOOM_ALL").is_some() { otherwise } else { Some(preemptions) }
}

/// Explores every execution of a model, or every one with at most `preemptions` if that is given.
///
/// A model is a table, the roles that run on it, each on its own thread, and a check for when all have ended. loom
/// can let one role's first load hide another's (tokio-rs/loom, issues 166 and 392). It then explores only a
/// handful of executions, without a warning. This depends on which role is spawned first. So every model runs with
/// its roles in the given order and in the opposite order. The model fails if the two runs together explore fewer
/// executions than `minimum`.
pub fn explore<Shared: Send + Sync + 'static>(
    minimum: usize,
    preemptions: Option<usize>,
    model: fn() -> Model<Shared>,
) {
    let start = Instant::now();
    let counts = [false, true].map(|opposite| {
        let executions = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&executions);
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.max_branches = 5000;
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            let (table, mut roles, finally) = model();
            if opposite {
                roles.reverse();
            }
            let spawn = |role: Role<Shared>| {
                let table = Arc::clone(&table);
                loom::thread::spawn(move || role(&table))
            };
            let threads: Vec<_> = roles.into_iter().map(spawn).collect();
            for thread in threads {
                thread.join().expect("a role that fails has ended the model already");
            }
            finally(&table);
        });
        executions.load(Ordering::Relaxed)
    });
    let name = std::thread::current().name().unwrap_or("model").to_owned();
    println!("{name}: {counts:?} executions in {:.2?}", start.elapsed());
    let executions = counts.iter().sum::<usize>();
    assert!(executions >= minimum, "only {executions} executions of {name}: the model shows too little");
}

/// Tests that a model passes, and that it fails with each of the seeded bugs (or groups of them). The failure must
/// have the message that names the violation. The control of a model about orderings alone is `ci/orderings`.
#[macro_export]
macro_rules! model {
    ($name:ident, at least $minimum:expr, $(preemptions $preemptions:literal $(in the $gate:ident $(else $otherwise:literal)?)?,)? fails if an ordering is weaker) => {
        model! { $name, at least $minimum, $(preemptions $preemptions $(in the $gate $(else $otherwise)?)?,)? fails with "" for [] }
    };
    ($name:ident, at least $minimum:expr, $(preemptions $preemptions:literal $(in the $gate:ident $(else $otherwise:literal)?)?,)? fails with $message:literal for [$($fault:ident $(+ $more:ident)*),*]) => {
        mod $name {
            use super::*;

            fn preemptions() -> Option<usize> {
                let _bound: Option<usize> = None;
                let _otherwise: Option<usize> = None;
                $($($(let _otherwise = Some($otherwise);)?)?)?
                $(let _bound = common::bound($preemptions, !stringify!($($gate)?).is_empty(), _otherwise);)?
                _bound
            }

            #[test]
            fn holds() {
                common::explore($minimum, preemptions(), super::$name);
            }

            $(#[test]
            #[allow(non_snake_case)]
            #[should_panic(expected = $message)]
            #[cfg_attr(ccf_uncontrolled, ignore = "this build has no controls")]
            fn $fault() {
                let _seeded = Seeded::bugs(&[Fault::$fault, $(Fault::$more),*]);
                common::explore(1, preemptions(), super::$name);
            })*
        }
    };
}
