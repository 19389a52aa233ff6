use std::time::Duration;

use concurrent_cuckoo_filter::{AbsorbError, ExpiringCuckooFilter, Expiry, Tick};

use crate::support::{Raw, hashes};
use crate::{Hasher, expiring};

#[test]
fn the_live_come_along_with_their_ends() {
    let [sum, other, direct] = [(); 3].map(|()| expiring(2000, 14));
    other.advance_to(Tick::new(2));
    other.restart_clock(Tick::new(995)); // other places on the ring
    for key in hashes(5000, 300) {
        other.insert_until(&key, Tick::new(997)).unwrap(); // dead by then
    }
    other.advance_to(Tick::new(998));
    sum.advance_to(Tick::new(1000));
    direct.advance_to(Tick::new(1000));
    let end = |key: &Raw| 999 + key.0 % 13;
    let (ours, theirs): (Vec<_>, Vec<_>) = (hashes(0, 900).collect(), hashes(900, 900).collect());
    for key in &ours {
        sum.insert_until(key, Tick::new(end(key))).unwrap();
        direct.insert_until(key, Tick::new(end(key))).unwrap();
    }
    for key in &theirs {
        other.insert_until(key, Tick::new(end(key))).unwrap();
        direct.insert_until(key, Tick::new(end(key))).unwrap();
    }
    assert!(sum.absorb(&other).is_ok());
    assert_eq!(sum.digest().unwrap(), direct.digest().unwrap());
    for now in 1000..1015 {
        sum.advance_to(Tick::new(now));
        for key in ours.iter().chain(&theirs) {
            assert!(sum.contains(key) || end(key) <= now, "it lives until {} and is gone at {now}", end(key));
        }
        let live = ours.iter().chain(&theirs).filter(|key| end(key) > now).count();
        assert_eq!(sum.live_len(), live, "at {now}");
    }
    // Entries that were absorbed can be removed from this filter.
    let key = Raw(99);
    let [sum, other] = [(); 2].map(|()| expiring(100, 14));
    sum.advance_to(Tick::new(7));
    other.advance_to(Tick::new(5));
    other.insert_until(&key, Tick::new(12)).unwrap();
    assert_eq!(sum.absorb(&other), Ok(1));
    assert!(sum.remove_expiring_at(&key, Tick::new(12)) && !sum.contains(&key));
}

/// A clock that is behind gets an error. This filter's clock may be ahead while the other's stands still.
#[test]
fn clocks_are_compared() {
    let [sum, other] = [(); 2].map(|()| expiring(100, 14));
    assert_eq!(sum.absorb(&other), Ok(0), "neither has a tick, and nothing is in");
    other.advance_to(Tick::new(10));
    other.insert_until(&Raw(1), Tick::new(12)).unwrap();
    other.insert_until(&Raw(2), Tick::new(24)).unwrap();
    let error = sum.absorb(&other).unwrap_err();
    assert!(matches!(error, AbsorbError::ClockBehind { ours: None, .. }), "{error}");
    assert!(error.to_string().contains("advance_to(Tick::new(10))"), "{error}");
    sum.advance_to(Tick::new(9));
    let error = sum.absorb(&other).unwrap_err();
    let AbsorbError::ClockBehind { ours, theirs, .. } = error else { panic!("{error}") };
    assert_eq!((ours, theirs), (Some(Tick::new(9)), Tick::new(10)));
    assert!(sum.is_empty());
    sum.advance_to(Tick::new(12));
    assert_eq!(other.absorb(&sum).map_err(|error| error.to_string()), {
        let error = "this filter is at tick 10, and the other at tick 12; call advance_to(Tick::new(12)) first";
        Err(error.to_owned())
    });
    assert_eq!(sum.absorb(&other), Ok(1));
    assert!(!sum.contains(&Raw(1)), "dead by this clock");
    assert!(sum.contains(&Raw(2)));
    assert_eq!(sum.live_len(), 1);
}

#[test]
fn lifetimes_and_resolutions_are_compared() {
    let [long, short] = [14, 9].map(|ticks| expiring(100, ticks));
    long.advance_to(Tick::new(10));
    short.advance_to(Tick::new(10));
    short.insert_until(&Raw(1), Tick::new(19)).unwrap();
    assert_eq!(long.absorb(&short), Ok(1), "it is on a ring of as many ticks, and lives no longer than it may");
    let error = short.absorb(&long).unwrap_err();
    assert!(matches!(error, AbsorbError::Lifetime { ours: 9, theirs: 14, .. }), "{error}");

    let every = |seconds| {
        let builder = ExpiringCuckooFilter::<Raw>::builder().capacity(100).hasher(Hasher::default());
        builder.lifetime(Duration::from_secs(13 * seconds), Duration::from_secs(seconds)).build().unwrap()
    };
    let error = every(60).absorb(&every(1)).unwrap_err();
    assert!(error.to_string().contains("60s") && error.to_string().contains("1s"), "{error}");
    assert_eq!(every(60).absorb(&every(60)), Ok(0));
    // A ring with another number of bits.
    assert!(matches!(expiring(100, 62).absorb(&long).unwrap_err(), AbsorbError::Layout { .. }));
}

/// Also if ends are beyond the largest tick.
#[test]
fn ends_at_the_end_of_time_come_along() {
    let every = || {
        let builder = ExpiringCuckooFilter::<Raw>::builder().capacity(100).hasher(Hasher::default());
        builder.lifetime(Duration::from_secs(13), Duration::from_secs(1)).build().unwrap()
    };
    let [sum, other] = [(); 2].map(|()| every());
    for filter in [&sum, &other] {
        filter.advance_to(Tick::new(5));
    }
    other.insert_until(&Raw(1), Expiry::After(Duration::from_secs(9))).unwrap();
    for filter in [&sum, &other] {
        filter.restart_clock(Tick::new(u64::MAX - 2));
    }
    assert!(other.contains(&Raw(1)));
    assert_eq!(sum.absorb(&other), Ok(1));
    assert!(sum.contains(&Raw(1)));
    sum.restart_clock(Tick::new(100));
    sum.advance_to(Tick::new(109));
    assert!(sum.contains(&Raw(1)), "it has ten ticks");
    sum.advance_to(Tick::new(110));
    assert!(!sum.contains(&Raw(1)));
}

/// Dead entries take up no room in the sum, whether swept or not.
#[test]
fn the_live_alone_must_fit() {
    let [sum, other] = [(); 2].map(|()| expiring(1000, 14));
    for filter in [&sum, &other] {
        filter.advance_to(Tick::new(10));
    }
    hashes(0, 900).for_each(|key| _ = sum.insert_until(&key, Tick::new(11)).unwrap());
    hashes(2000, 900).for_each(|key| _ = other.insert_until(&key, Tick::new(11)).unwrap());
    hashes(4000, 50).for_each(|key| _ = other.insert_until(&key, Tick::new(20)).unwrap());
    let error = sum.absorb(&other).unwrap_err();
    assert!(matches!(error, AbsorbError::TooMany { len: 900, coming: 950, .. }), "{error}");
    let full = expiring(1000, 14);
    full.advance_to(Tick::new(11));
    hashes(6000, full.capacity() - 40).for_each(|key| _ = full.insert_until(&key, Tick::new(20)).unwrap());
    let error = full.absorb(&other).unwrap_err();
    assert!(matches!(error, AbsorbError::TooMany { coming: 50, .. }), "those that live by this clock: {error}");
    sum.advance_to(Tick::new(11));
    other.advance_to(Tick::new(11));
    assert_eq!(sum.absorb(&other), Ok(50));
    assert!(hashes(4000, 50).all(|key| sum.contains(&key)));
}
