//! The chain of each error, from its message to its last source: a log of all of it says everything once.

mod support;

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{
    AbsorbError, BuildError, ConcurrentCuckooFilter, CuckooMaplet, ExpiringCuckooFilter, ExpiringInsertError,
    GrowableCuckooFilter, GrowableInsertError, InsertBatchError, InsertError, MapletInsertError, ReserveError, Tick,
    TickError, ValueTooLarge,
};
use support::{chain, seeded};

type Fixed = ConcurrentCuckooFilter<u64, support::Seeded>;

fn fixed() -> Fixed {
    Fixed::with_capacity_and_hasher(10, seeded(1))
}

/// What an error is called in a failed check, and its chain.
fn check<E: Error + 'static>(error: E, links: usize) {
    let messages = chain(&error);
    assert_eq!(messages.len(), links, "{error:?}: {messages:?}");
}

/// Inserts the key until that fails.
fn refused<E>(mut insert: impl FnMut() -> Result<(), E>) -> E {
    (0..100).find_map(|_| insert().err()).expect("copies fill the two buckets of a key")
}

#[test]
fn an_error_without_a_source_says_everything_itself() {
    let filter = fixed();
    check::<InsertError>(refused(|| filter.insert(&7)), 1);
    check::<AbsorbError>(filter.absorb(&Fixed::with_capacity_and_hasher(10, seeded(2))).unwrap_err(), 1);
    check::<BuildError>(Fixed::builder_with_hasher(seeded(1)).build().unwrap_err(), 1);

    let growable = GrowableCuckooFilter::<u64, _>::builder_with_hasher(seeded(1)).max_capacity(50).build().unwrap();
    check::<GrowableInsertError>((0..1000).find_map(|key| growable.insert(&key).err()).expect("it is full"), 1);
    check::<ReserveError>(growable.reserve(1000).unwrap_err(), 1);

    let expiring = ExpiringCuckooFilter::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).lifetime_in_ticks(15);
    let expiring = expiring.build().unwrap();
    check::<ExpiringInsertError>(expiring.insert(&7).unwrap_err(), 1);
    check::<TickError>(expiring.tick_at(SystemTime::now()).unwrap_err(), 1);
    let second = Duration::from_secs(1);
    let by_time = ExpiringCuckooFilter::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).lifetime(second, second);
    check::<TickError>(by_time.build().unwrap().tick_at(UNIX_EPOCH - second).unwrap_err(), 1);

    let maplet = CuckooMaplet::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).value_bits(4).build().unwrap();
    check::<MapletInsertError>(maplet.insert(&7, 16).unwrap_err(), 1);
    check::<ValueTooLarge>(maplet.replace(&7, 3, 16).unwrap_err(), 1);
}

/// The message of a batch says where, its source why.
#[test]
fn the_error_of_a_batch_is_followed_by_that_of_the_key() {
    fn why<E: Error + PartialEq + 'static>(error: &InsertBatchError<E>, index: usize) -> String {
        let [place, reason] = <[String; 2]>::try_from(chain(error)).expect("two errors");
        assert!(place.contains(&format!(" key {index} ")), "{place}");
        let source = error.source().and_then(|source| source.downcast_ref::<E>());
        assert!(error.index == index && source == Some(&error.error), "{error:?}");
        assert_eq!(reason, error.error.to_string());
        reason
    }
    let copies = [7; 100];
    let fixed = fixed();
    let index = (0..100).take_while(|_| fixed.insert(&7).is_ok()).count();
    fixed.clear();
    let reason = why(&fixed.insert_batch(&copies).unwrap_err(), index);
    assert!(reason.contains(&format!("{index} copies")) && reason.contains("insert_if_absent"), "{reason}");

    let growable = GrowableCuckooFilter::<u64, _>::with_capacity_and_hasher(10, seeded(1));
    let index = (0..100).take_while(|_| growable.insert(&7).is_ok()).count();
    growable.clear();
    let reason = why(&growable.insert_batch(&copies).unwrap_err(), index);
    assert!(reason.contains(&format!("{index} copies")), "{reason}");

    let maplet = CuckooMaplet::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).value_bits(4).build().unwrap();
    let reason = why(&maplet.insert_batch([(&1, 3), (&2, 16)]).unwrap_err(), 1);
    assert!(reason.contains("the value 16 is too large"), "{reason}");

    let expiring = ExpiringCuckooFilter::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).lifetime_in_ticks(15);
    let expiring = expiring.build().unwrap();
    why(&expiring.insert_batch([&1]).unwrap_err(), 0);
    expiring.advance_to(Tick::new(5));
    let far = [(&1, Tick::new(6)), (&2, Tick::new(100))];
    let reason = why(&expiring.insert_until_batch(far, &mut Vec::new()).unwrap_err(), 1);
    assert!(reason.contains("tick 100"), "{reason}");
}

/// The file, what to do, and the system's reason: each once.
#[test]
#[cfg(feature = "snapshot")]
fn the_error_of_a_file_leads_to_that_of_the_system() {
    use concurrent_cuckoo_filter::{LoadError, LoadPathError, SnapshotInfo};

    let missing = std::env::temp_dir().join("ccf-a-file-that-nothing-makes");
    let system = std::fs::read(&missing).unwrap_err().to_string();
    let errors: [LoadPathError; 3] = [
        Fixed::load_from_path(&missing, seeded(1), 1 << 20).unwrap_err(),
        SnapshotInfo::read_from_path(&missing).unwrap_err(),
        SnapshotInfo::verify_from_path(&missing).unwrap_err(),
    ];
    for error in errors {
        let [file, remedy, reason] = <[String; 3]>::try_from(chain(&error)).expect("three errors");
        assert!(file.contains(&format!("{missing:?}")), "{file}");
        assert!(remedy.contains("there is no snapshot; build the filter"), "{remedy}");
        assert_eq!(reason, system);
        // The reason alone, as `?` keeps it.
        let error = LoadError::from(error);
        assert!(matches!(error, LoadError::NotFound(_)), "{error:?}");
        assert_eq!(chain(&error), [remedy, reason]);
    }
    // What the library says itself has no source.
    check::<LoadError>(Fixed::load(&b"an empty file"[..], seeded(1), 1 << 20).unwrap_err(), 1);
    check::<std::io::Error>(fixed().save_to_path(missing.join("file")).unwrap_err(), 1);
}

/// Two sizes of a growable filter are not two settings, so the error does not name them.
#[test]
#[cfg(feature = "snapshot")]
fn other_settings_are_named_without_the_size() {
    use concurrent_cuckoo_filter::{LoadError, Loader, SnapshotMismatch};

    type Growable = GrowableCuckooFilter<u64, support::Seeded>;
    let builder = Growable::builder_with_hasher(seeded(1)).capacity(100);
    let filter = builder.clone().build().unwrap();
    filter.reserve(10_000).unwrap();
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    let load = |plan| Loader::<Growable, _>::new(seeded(1), 1 << 20).expect_plan(plan).load(&bytes[..]);
    load(builder.plan().unwrap()).expect("its size does not matter");
    let plan = builder.false_positive_rate(0.01).plan().unwrap();
    let error = load(plan).expect_err("another rate");
    let most = [filter.max_capacity(), plan.max_capacity.unwrap()].map(|most| format!("for up to {most} keys"));
    let LoadError::Mismatch(SnapshotMismatch::Settings { snapshot, expected, .. }) = &error else {
        panic!("{error:?}")
    };
    assert!(snapshot.contains(&most[0]) && expected.contains(&most[1]), "{error}");
    let text = chain(&error).concat();
    assert!(!text.contains(&filter.capacity().to_string()) && !text.contains("bytes"), "{text}");
}
