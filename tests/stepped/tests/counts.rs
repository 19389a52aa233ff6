//! Lookups that are disturbed before chosen steps. A look is counted if it has to be repeated, and only then. And how many
//! steps the operations of a filter take that grows and shrinks.

use std::cell::Cell;
use std::rc::Rc;

use ccf_steps::model::{AnyLayout, Growable, GrowableKey, Key, Smallest, Step, Table, Usual, before_each_step};

/// All keys of a table of two buckets have this pair, and so the same stripe.
const BUCKETS: usize = 2;

fn key<L: AnyLayout>(nth: usize) -> Key {
    Key::of::<L>(BUCKETS, 0, 1, nth)
}

/// How many retries are counted during `lookup`. Before each of the given steps (counted from 0), a key of the same
/// stripe is inserted and removed.
fn retries<L: AnyLayout + 'static>(present: &[Key], steps: &'static [usize], lookup: impl Fn(&Table<L>)) -> u64 {
    let table = Rc::new(Table::<L>::new(BUCKETS));
    present.iter().for_each(|&key| table.place(key));
    let (next, disturbing, other) = (Cell::new(0), Cell::new(false), Rc::clone(&table));
    before_each_step(Some(Rc::new(move |_| {
        if !disturbing.get() && steps.contains(&next.replace(next.get() + 1)) {
            disturbing.set(true);
            other.insert(key::<L>(9)).expect("there is room");
            assert!(other.remove(key::<L>(9)));
            disturbing.set(false);
        }
    })));
    lookup(&table);
    before_each_step(None);
    table.lookup_retries()
}

/// A look takes four steps: it reads the version, both buckets, and the version again.
fn each_disturbed_look_is_counted<L: AnyLayout + 'static>() {
    let of_absent = |steps| retries::<L>(&[], steps, |table| assert!(!table.contains(key::<L>(0))));
    assert_eq!(of_absent(&[]), 0);
    assert_eq!(of_absent(&[0]), 0, "before the look");
    assert_eq!([of_absent(&[1]), of_absent(&[2]), of_absent(&[3])], [1; 3]);
    assert_eq!(of_absent(&[1, 2, 3]), 1, "one look, however often it is disturbed");
    assert_eq!(of_absent(&[1, 4]), 1, "between two looks");
    assert_eq!([of_absent(&[1, 6]), of_absent(&[1, 6, 11])], [2, 3]);

    let of_present = |steps| retries::<L>(&[key::<L>(0)], steps, |table| assert!(table.contains(key::<L>(0))));
    assert_eq!([of_present(&[1]), of_present(&[2]), of_present(&[3])], [1; 3], "whatever it has found");
    assert_eq!([of_present(&[1, 6]), of_present(&[1, 6, 11])], [1; 2], "the second look's hit is certain");

    let keys = [key::<L>(0), key::<L>(1), key::<L>(2)];
    let of_batch =
        |steps| retries::<L>(&keys[..1], steps, |table| assert_eq!(table.contains_batch(keys), [true, false, false]));
    assert_eq!(of_batch(&[0, 4, 8]), 0, "between the looks");
    assert_eq!(of_batch(&[6]), 2, "all that were not found are looked up again");
    assert_eq!(of_batch(&[6, 13]), 3, "and one of them once more");
}

#[test]
fn each_disturbed_look_is_counted_plain() {
    each_disturbed_look_is_counted::<Smallest>();
}

#[test]
fn each_disturbed_look_is_counted_semi_sorted() {
    each_disturbed_look_is_counted::<Usual>();
}

/// How many of these steps an operation takes.
fn count(step: Step, operation: impl FnOnce()) -> usize {
    let steps = Rc::new(Cell::new(0));
    let counter = Rc::clone(&steps);
    before_each_step(Some(Rc::new(move |taken| counter.set(counter.get() + usize::from(taken == step)))));
    operation();
    before_each_step(None);
    steps.get()
}

/// Keys of different classes, all with the first of four buckets and the third.
fn growing(nth: usize) -> GrowableKey {
    GrowableKey::new(0, 4, nth)
}

/// A filter of four buckets with the first key.
fn at_rest() -> Growable {
    let filter = Growable::new();
    filter.grow();
    filter.insert(growing(0)).expect("there is room");
    filter
}

/// The same while it grows. Inserts have split this many buckets.
fn amid_a_growth(splits: usize) -> Growable {
    let filter = at_rest();
    filter.begin_growth();
    (0..splits).for_each(|_| filter.help());
    filter
}

fn amid_a_shrink() -> Growable {
    let filter = at_rest();
    filter.begin_shrink();
    filter
}

#[test]
fn what_a_lookup_reads() {
    let loads = |filter: &Growable, nth| {
        let lookup = || assert_eq!(filter.contains(growing(nth)), nth == 0);
        count(Step::Load, lookup)
    };
    let loads_of = |filter: &Growable, key| count(Step::Load, || assert!(!filter.contains(key)));
    let [present, absent] = [0, 1].map(|nth| move |filter: &Growable| loads(filter, nth));
    let fixed = Table::<Smallest>::new(BUCKETS);
    assert_eq!(count(Step::Load, || assert!(!fixed.contains(key::<Smallest>(0)))), 4, "the look");
    // The phase, the pointer to the table, twice, and the look.
    assert_eq!(present(&at_rest()), 3 + 4);
    // And the phase again.
    assert_eq!(absent(&at_rest()), 3 + 4 + 1);

    // The phase, twice, the pointers to both tables, twice each, the phase, and the version.
    let begin = 2 + 4 + 1 + 1;
    // The version and the phase again.
    let end = 2;
    // Amid a growth, how many buckets are marked, and one word for each bucket, whichever those are.
    for splits in 0..4 {
        assert_eq!(present(&amid_a_growth(splits)), begin + 1 + 2);
        assert_eq!(absent(&amid_a_growth(splits)), begin + 1 + 2 + end);
    }
    // An insert has split its two buckets, the last ones, and the first. So a lookup meets marks, and reads all words.
    let filter = amid_a_growth(0);
    filter.insert(GrowableKey::new(2, 6, 1)).expect("there is room");
    assert_eq!(loads_of(&filter, GrowableKey::new(2, 6, 2)), begin + 1 + 2 + 4 + end);
    // Amid a shrink it reads both words of both tables.
    assert_eq!(present(&amid_a_shrink()), begin + 4);
    assert_eq!(absent(&amid_a_shrink()), begin + 4 + end);
}

/// Each bucket that an operation splits takes a lock. An insert splits the two buckets of its key, and as many more as
/// `growth/resize.rs` says, which is one in models. Others have split what is marked already.
#[test]
fn what_an_operation_splits() {
    let (odd, even) = (GrowableKey::new(2, 6, 0), growing(1));
    let inserts = |filter: &Growable, key| count(Step::Lock, || filter.insert(key).expect("there is room"));
    assert_eq!(inserts(&at_rest(), even), 0, "at rest an insert takes no lock");
    assert_eq!(inserts(&amid_a_shrink(), even), 1, "that of the key");
    // The insert splits the buckets 1 and 3, and the first that nobody has claimed.
    assert_eq!([0, 1, 2].map(|splits| inserts(&amid_a_growth(splits), odd)), [3, 2, 2]);
    // It splits the buckets 0 and 2, and that one.
    assert_eq!([0, 1, 2].map(|splits| inserts(&amid_a_growth(splits), even)), [2, 2, 1]);
    // The last bucket, for either reason, and the lock to end the growth.
    for key in [odd, even] {
        let filter = amid_a_growth(3);
        assert_eq!((inserts(&filter, key), filter.tables()), (2, 1));
    }
    // A removal and a count split the two buckets of their key, and take its lock. A lookup splits nothing.
    let filter = amid_a_growth(0);
    assert_eq!(count(Step::Lock, || assert!(!filter.contains(odd))), 0);
    assert_eq!(count(Step::Lock, || assert_eq!(filter.count(odd), 0)), 3);
    assert_eq!(count(Step::Lock, || assert!(!filter.remove(odd))), 1, "nothing is left to split");
}

/// However the keys are, a growth ends when as many inserts have come as there are buckets to split, or fewer.
#[test]
fn how_many_inserts_end_a_growth() {
    let filter = amid_a_growth(0);
    let ended = (0..4).any(|_| {
        filter.insert(growing(1)).expect("there is room");
        assert!(filter.remove(growing(1)));
        filter.tables() == 1
    });
    assert!(ended, "there are four buckets to split");
}
