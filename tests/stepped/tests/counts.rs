//! Lookups whose reads are invalidated before chosen steps. A retry is counted if a read has to be repeated, and only then.
//! And how many steps the operations of a filter take that grows and shrinks.

use std::cell::Cell;
use std::rc::Rc;

use ccf_steps::WhenFull;
use ccf_steps::model::{
    Expiring, Growable, GrowableKey, Key, Maplet, ModelLayout, Set, Smallest, Step, Usual, before_each_step,
};

/// All keys of a table of two buckets have this pair, and so the same stripe.
const BUCKETS: usize = 2;

fn key<L: ModelLayout>(nth: usize) -> Key {
    Set::<L>::key(BUCKETS, 0, 1, nth)
}

/// How many retries are counted during `lookup`. Before each of the given steps (counted from 0), a key of the same
/// stripe is inserted and removed.
fn retries<L: ModelLayout>(present: &[Key], steps: &'static [usize], lookup: impl Fn(&Set<L>)) -> u64 {
    let table = Rc::new(Set::<L>::new(BUCKETS));
    present.iter().for_each(|&key| table.place(key));
    let (next, changing, other) = (Cell::new(0), Cell::new(false), Rc::clone(&table));
    before_each_step(Some(Rc::new(move |_| {
        if !changing.get() && steps.contains(&next.replace(next.get() + 1)) {
            changing.set(true);
            other.insert(key::<L>(9)).expect("there is room");
            assert!(other.remove(key::<L>(9)));
            changing.set(false);
        }
    })));
    lookup(&table);
    before_each_step(None);
    table.lookup_retries()
}

/// A read takes four steps: it loads the version, both buckets, and the version again.
fn each_invalidated_read_is_counted<L: ModelLayout>() {
    let of_absent = |steps| retries::<L>(&[], steps, |table| assert!(!table.contains(key::<L>(0))));
    assert_eq!(of_absent(&[]), 0);
    assert_eq!(of_absent(&[0]), 0, "before the read");
    assert_eq!([of_absent(&[1]), of_absent(&[2]), of_absent(&[3])], [1; 3]);
    assert_eq!(of_absent(&[1, 2, 3]), 1, "one read, however often it is invalidated");
    assert_eq!(of_absent(&[1, 4]), 1, "between two reads");
    assert_eq!([of_absent(&[1, 6]), of_absent(&[1, 6, 11])], [2, 3]);

    let of_present = |steps| retries::<L>(&[key::<L>(0)], steps, |table| assert!(table.contains(key::<L>(0))));
    assert_eq!([of_present(&[1]), of_present(&[2]), of_present(&[3])], [1; 3], "whatever it has found");
    assert_eq!([of_present(&[1, 6]), of_present(&[1, 6, 11])], [1; 2], "the second read's hit is certain");

    let keys = [key::<L>(0), key::<L>(1), key::<L>(2)];
    let of_batch =
        |steps| retries::<L>(&keys[..1], steps, |table| assert_eq!(table.contains_batch(keys), [true, false, false]));
    assert_eq!(of_batch(&[0, 4, 8]), 0, "between the reads");
    assert_eq!(of_batch(&[6]), 2, "all that were not found are looked up again");
    assert_eq!(of_batch(&[6, 13]), 3, "and one of them once more");
}

#[test]
fn each_invalidated_read_is_counted_plain() {
    each_invalidated_read_is_counted::<Smallest>();
}

#[test]
fn each_invalidated_read_is_counted_semi_sorted() {
    each_invalidated_read_is_counted::<Usual>();
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

/// Keys of different classes, all with the same two buckets.
fn growing(nth: usize) -> GrowableKey {
    GrowableKey::new(0, 5, nth)
}

#[test]
fn what_a_lookup_reads() {
    let fixed = Set::<Smallest>::new(BUCKETS);
    assert_eq!(count(Step::Load, || assert!(!fixed.contains(key::<Smallest>(0)))), 4, "the attempt");
    // And the epoch, the state, and the epoch again, whatever the size. And where the two words are: two loads if both are in
    // the range of addresses, and five otherwise. (Usually, a lookup in a large table takes two.)
    for buckets in 2..=8 {
        let filter = Growable::of_buckets(buckets);
        filter.insert(growing(0)).expect("there is room");
        for nth in [0, 1] {
            let loads = count(Step::Load, || assert_eq!(filter.contains(growing(nth)), nth == 0));
            assert!([2, 5].contains(&(loads - 4 - 3)), "{buckets} buckets: {loads} loads");
        }
    }
}

/// A batch whose reads are not invalidated loads as much as single lookups do, and where each word is to prefetch it: it looks up no key
/// twice.
#[test]
fn what_a_batch_reads() {
    let keys: [GrowableKey; 20] = std::array::from_fn(|nth| GrowableKey::new(2 * (nth % 4), 1 + 2 * (nth % 3), nth));
    for buckets in 2..=8 {
        let filter = Growable::of_buckets(buckets);
        keys[..2].iter().for_each(|&key| filter.insert(key).expect("there is room"));
        let alone = count(Step::Load, || keys.iter().for_each(|&key| _ = filter.contains(key)));
        let together = count(Step::Load, || _ = filter.contains_batch(&keys));
        assert!(2 * together < 3 * alone, "{buckets} buckets: {together} loads, {alone} one by one");
    }
}

/// More buckets than a search examines at most.
const MANY: usize = 4096;

/// How many words and versions an operation reads, and how many locks it takes.
fn work(operation: impl Fn()) -> [usize; 2] {
    [Step::Load, Step::Lock].map(|step| count(step, &operation))
}

/// One more copy of a key whose copies fill its two buckets is rejected once these are read, in a table of any size:
/// reads of two words each by the attempts, by the search, and by the count under the lock.
fn one_more_copy_is_rejected_at_once<L: ModelLayout>() {
    let one = Set::<L>::key_at(MANY, 0);
    let table = Set::<L>::new(MANY);
    while table.insert(one).is_ok() {}
    assert_eq!(table.len(), 2 * table.slots_per_bucket());
    let [loads, locks] = work(|| assert!(table.insert(one).is_err()));
    assert!(loads <= 11 && locks <= 1, "{loads} loads, {locks} locks");

    // In a maplet, whatever values the copies have.
    let one = Maplet::<L>::key_at(MANY, 0);
    let maplet = Maplet::<L>::new(MANY);
    (0..).find(|nth| maplet.insert(one.with(nth % 3)).is_err());
    for value in 0..4 {
        let [loads, locks] = work(|| assert!(maplet.insert(one.with(value)).is_err()));
        assert!(loads <= 20 && locks <= 3, "{loads} loads, {locks} locks");
    }
    // One that has a value already gets it, without a lock.
    assert_eq!(work(|| assert!(!maplet.insert_if_absent(one).expect("it has values").is_empty()))[1], 0);

    // A union adds a pair of a key and a value if it is not there. Other values of the key don't count, and are no reason
    // to search again.
    let of_union = |value| {
        let other = Maplet::<L>::new(MANY);
        other.insert(one.with(value)).expect("it is empty");
        work(|| assert_eq!(maplet.unite(&other).is_err(), value == 3))
    };
    let ([present, _], [absent, _]) = (of_union(0), of_union(3));
    assert!(absent <= present + 40, "{absent} loads, {present} if the pair is there");

    for when_full in [WhenFull::Refuse, WhenFull::EvictSoonest] {
        let filter = Expiring::<L>::with_clock(MANY, 3, 1000, when_full);
        while filter.insert_until(one, 1002) == Ok(true) {}
        for expires_at in [1001, 1002, 1003] {
            let [loads, locks] = work(|| assert!(filter.insert_until(one, expires_at).is_err()));
            assert!(loads <= 48 && locks <= 4, "{loads} loads, {locks} locks");
        }
        assert_eq!(filter.insert_or_renew_until(one, 1003), Ok(false), "it needs no room");
        assert_eq!((filter.ahead(), filter.live_len()), (0, 2 * filter.slots_per_bucket()), "nothing was evicted");
    }
}

#[test]
fn one_more_copy_is_rejected_at_once_plain() {
    one_more_copy_is_rejected_at_once::<Smallest>();
}

#[test]
fn one_more_copy_is_rejected_at_once_semi_sorted() {
    one_more_copy_is_rejected_at_once::<Usual>();
}

/// Keys that share three buckets fill them. An insert of any of them examines these, and locks the stripes of what is in
/// them.
#[test]
fn a_full_set_of_few_buckets_is_found_at_once() {
    let table = Set::<Smallest>::new(MANY);
    // Pairs of one even bucket and one odd one.
    let keys = [(0, 1), (2, 1), (2, 3)].map(|(first, second)| Key::new(MANY, first, second, 0));
    for _ in 0..3 {
        keys.iter().for_each(|&key| _ = table.insert(key));
    }
    assert_eq!(table.len(), 4 * table.slots_per_bucket());
    for key in keys {
        let [loads, locks] = work(|| assert!(table.insert(key).is_err()));
        // The search tries 32 buckets before it notices.
        assert!(loads <= 64 + 64 && locks <= 12, "{loads} loads, {locks} locks");
    }
}

/// A further copy fails after its class was counted: under the lock of its stripe, and without a search.
#[test]
fn what_a_copy_too_many_reads() {
    for buckets in 2..=8 {
        let filter = Growable::of_buckets(buckets);
        (0..2).for_each(|_| filter.insert(growing(0)).expect("it may have two"));
        // Keys through which a search would lead on.
        (1..3).for_each(|nth| filter.insert(growing(nth)).expect("there is room"));
        let fails = || assert!(filter.insert(growing(0)).is_err());
        let [loads, locks] = [Step::Load, Step::Lock].map(|step| count(step, fails));
        println!("{buckets} buckets: {loads} loads, {locks} locks");
        // Fourteen, one of them of the word that counts the item, and for each of four words where it is: two loads.
        assert!(loads <= 14 + 4 * 2 && locks == 1, "{buckets} buckets: {loads} loads, {locks} locks");
    }
}

/// An insert that finds room takes the gate of one bucket; if it has to look for copies first, also the stripe.
#[test]
fn what_an_insert_that_finds_room_locks() {
    for buckets in 2..=8 {
        let filter = Growable::of_buckets(buckets);
        let locks = |insert: &dyn Fn()| count(Step::Lock, insert);
        assert_eq!(locks(&|| filter.insert(growing(0)).expect("there is room")), 1, "{buckets} buckets");
        assert_eq!(locks(&|| assert_eq!(filter.insert_if_absent(growing(1)), Ok(true))), 2, "{buckets} buckets");
        assert_eq!(locks(&|| assert_eq!(filter.insert_if_absent(growing(1)), Ok(false))), 0, "{buckets} buckets");
        // Perhaps it sees the copy under the gate.
        assert!(locks(&|| filter.insert(growing(0)).expect("it may have two")) <= 3, "{buckets} buckets");
    }
}

/// An insert that makes room takes a stripe and two gates, and has added its copy then. If it has to look for copies, it does so
/// under its stripe before and after that, and adds its copy under the gate of one bucket.
#[test]
fn what_an_insert_that_makes_room_locks() {
    let locks = |insert: &dyn Fn(&Growable)| {
        let filter = Growable::of_buckets(8);
        (0..2).for_each(|nth| filter.place(GrowableKey::new(0, 3, nth), false));
        (0..2).for_each(|nth| filter.place(GrowableKey::new(2, 1, nth), true));
        let locks = count(Step::Lock, || insert(&filter));
        assert_eq!((filter.len(), filter.count(GrowableKey::new(0, 1, 0))), (5, 1));
        locks
    };
    let key = GrowableKey::new(0, 1, 0);
    assert_eq!(locks(&|filter| filter.insert(key).expect("there is room")), 3);
    assert_eq!(locks(&|filter| assert_eq!(filter.insert_if_absent(key), Ok(true))), 1 + 3 + 2);
}
