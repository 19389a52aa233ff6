//! What a snapshot keeps: the count goes on, and each key keeps its age.

use std::time::Duration;

use concurrent_cuckoo_filter::{
    LoadError, Loader, SnapshotDamage, SnapshotInfo, SnapshotMismatch, UnsupportedSnapshot,
};

use crate::forged::Forged;
use crate::support::{Seeded, seeded};
use crate::{Clock, Filter, builder, held, last, within};

fn saved(filter: &Filter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Filter {
    Filter::load(bytes, seeded(1), usize::MAX).unwrap()
}

/// A filter that is saved and loaded at any point goes on exactly as one that was not.
#[test]
fn a_count_goes_on_as_if_nothing_had_happened() {
    for keys in [1, 14, 100, 1000] {
        for saved_at in [0, 1, keys / 2, keys, keys + 1, 3 * keys + keys / 3] {
            let filter = last(keys as usize);
            (0..saved_at).for_each(|key| _ = filter.insert_or_renew(&key));
            let loaded = load(&saved(&filter));
            assert_eq!((loaded.window(), loaded.capacity()), (filter.window(), filter.capacity()));
            for key in saved_at..saved_at + 3 * keys {
                assert_eq!(loaded.insert(&key), filter.insert(&key));
                if keys <= 100 || key % 37 == 0 {
                    let keys = 0..=key;
                    assert!(keys.into_iter().all(|key| loaded.contains(&key) == filter.contains(&key)), "{key}");
                }
            }
        }
    }
}

#[test]
fn a_key_keeps_its_age_and_the_time_in_between_does_not_count() {
    let (filter, clock) = within(Duration::from_secs(65), 1000);
    clock.set(Duration::from_secs(100));
    assert!(filter.insert(&1));
    clock.set(Duration::from_millis(131_234));
    assert!(filter.insert(&2));
    let bytes = saved(&filter);
    // Another process, some time later, whose clock began anew. It is given to the loader, or to the filter.
    let clock = Clock::default();
    let loader = Loader::<Filter, Seeded>::new(seeded(1), usize::MAX).clock(clock.read());
    for loaded in [loader.clone().load(&bytes[..]).unwrap().filter, clock.drive(load(&bytes))] {
        let found = |millis: u64| {
            clock.set(Duration::from_millis(millis));
            (loaded.contains(&1), loaded.contains(&2))
        };
        // The first key was 31.234 s old, and has expired at 165 to 170 s of the old clock.
        assert_eq!(found(33_766), (true, true));
        assert_eq!(found(38_766), (false, true));
        assert_eq!(found(65_000), (false, true));
        assert_eq!(found(70_000), (false, false));
        assert!(loaded.insert(&3));
        clock.set(Duration::ZERO);
    }
}

/// The ends of keys count from the present in a digest: nobody knows the ticks of a filter's own clock.
#[test]
fn a_save_has_the_digest_of_the_loaded_filter() {
    let digest = |filter: &Filter| filter.begin_save().unwrap().digest().unwrap();
    for keys in [0, 500, 5000] {
        let filter = last(1000);
        (0..keys).for_each(|key| _ = filter.insert(&key));
        assert_eq!(digest(&filter), digest(&load(&saved(&filter))), "{keys} of the last 1000");
        let other = last(1000);
        (1..=keys).for_each(|key| _ = other.insert(&key));
        assert_eq!(digest(&filter) == digest(&other), keys == 0, "other keys");
    }
    for second in [0, 3, 20, 100] {
        let (filter, clock) = within(Duration::from_secs(65), 1000);
        (0..300).for_each(|key| _ = filter.insert(&key));
        clock.set(Duration::from_secs(second));
        (200..600).for_each(|key| _ = filter.insert(&key));
        let of_then = digest(&filter);
        assert_eq!(of_then, digest(&load(&saved(&filter))), "after {second} s");
        clock.set(Duration::from_secs(second + 50));
        assert!(filter.contains(&599));
        assert_ne!(of_then, digest(&filter), "each key has less time left");
    }
}

#[test]
fn what_was_evicted_stays_so() {
    let (filter, clock) = within(Duration::from_secs(60), 1000);
    for key in 0..3000 {
        clock.set(Duration::from_millis(key * 10));
        assert!(filter.insert(&key));
    }
    let loaded = Clock::default().drive(load(&saved(&filter)));
    assert!((0..3000).all(|key| loaded.contains(&key) == filter.contains(&key)));
    (3000..6000).for_each(|key| assert!(loaded.insert(&key) && loaded.contains(&key)));
}

#[test]
fn its_metadata_and_settings_are_read_and_compared() {
    let filter = last(1000);
    (0..500).for_each(|key| _ = filter.insert(&key));
    let bytes = saved(&filter);
    let info = SnapshotInfo::verify(&bytes[..]).unwrap();
    assert_eq!((info.plan.window, info.len, info.now), (Some(filter.window()), Some(500), None));
    assert_eq!(info.bytes as usize, bytes.len());
    assert_eq!(bytes.len(), 100 + "u64".len() + 8 * filter.plan().layout.buckets);

    let loader = Loader::<Filter, Seeded>::new(seeded(1), usize::MAX);
    assert!(loader.clone().expect_plan(builder().last(1000).plan().unwrap()).load(&bytes[..]).is_ok());
    for other in [builder().last(1100), builder().within(Duration::from_secs(1), 1000)] {
        let error = loader.clone().expect_plan(other.plan().unwrap()).load(&bytes[..]).unwrap_err();
        assert!(matches!(error, LoadError::Mismatch(SnapshotMismatch::Settings { .. })), "{error}");
        assert!(error.to_string().contains("the last 1001 to 1077 keys"), "{error}");
    }
    let error = Filter::load(&bytes[..], seeded(2), usize::MAX).unwrap_err();
    assert!(matches!(error, LoadError::Mismatch(SnapshotMismatch::Hasher)), "{error}");
    let (at_least, _) = held(&filter);
    assert_eq!(at_least, 1001);
}

/// Each field of the header that no filter has is an error, and nothing panics.
#[test]
fn forged_clocks_are_errors() {
    let filter = last(1000);
    (0..3000).for_each(|key| _ = filter.insert(&key));
    let bytes = saved(&filter);
    let forge = |change: &dyn Fn(&mut [u8])| {
        let mut forged = Forged::of(&bytes);
        assert_eq!(forged.bytes(), bytes);
        change(&mut forged.head);
        Filter::load(&forged.bytes()[..], seeded(1), usize::MAX)
    };
    let set = |at: usize, with: &'static [u8]| forge(&move |head| head[at..][..with.len()].copy_from_slice(with));
    assert!(set(12, &[3, 0]).is_ok(), "three keys of the group have come");
    for (at, with) in [
        (0, &[3][..]),
        (0, &[9]),
        (2, &[0; 8]),
        (10, &[1, 0]),
        (10, &[15, 0]),
        (20, &[16, 0]),
        (22, &[17, 0, 0, 0]),
        (26, &[14, 0]),
    ] {
        let error = set(at, with).unwrap_err();
        assert!(matches!(error, LoadError::Damaged(SnapshotDamage::InvalidClock { .. })), "{at}: {error}");
        // No number is named that such a snapshot does not have.
        assert!(!error.to_string().contains("nanoseconds"), "{error}");
        assert_eq!(error.to_string().contains("14 evicted ticks"), at == 26, "{error}");
    }
    assert!(matches!(set(1, &[2]).unwrap_err(), LoadError::Unsupported(UnsupportedSnapshot::Flags { flags: 2, .. })));
    // A time must have ticks of a millisecond.
    assert!(matches!(set(1, &[1]).unwrap_err(), LoadError::Damaged(SnapshotDamage::InvalidClock { .. })));
}
