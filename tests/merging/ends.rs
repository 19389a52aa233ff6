use std::time::Duration;

use concurrent_cuckoo_filter::{AbsorbError, ExpiringCuckooFilter, Expiry, Tick};

use crate::support::{Raw, hashes};
use crate::{Hasher, evicting, expiring};

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
        builder.lifetime(Duration::from_secs(13 * seconds)).resolution(Duration::from_secs(seconds)).build().unwrap()
    };
    let error = every(60).absorb(&every(1)).unwrap_err();
    assert!(error.to_string().contains("1 min") && error.to_string().contains("1 s"), "{error}");
    assert_eq!(every(60).absorb(&every(60)), Ok(0));
    // A ring with another number of bits.
    assert!(matches!(expiring(100, 62).absorb(&long).unwrap_err(), AbsorbError::Layout { .. }));
}

/// Also if ends are beyond the largest tick.
#[test]
fn ends_at_the_end_of_time_come_along() {
    let every = || {
        let builder = ExpiringCuckooFilter::<Raw>::builder().capacity(100).hasher(Hasher::default());
        builder.lifetime(Duration::from_secs(13)).resolution(Duration::from_secs(1)).build().unwrap()
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

/// Ticks that the other filter has evicted count too: with them, its clock may be beyond the largest tick.
#[test]
fn evicted_ticks_beyond_the_largest_tick_hide_no_entry() {
    const LAST: u64 = u64::MAX;
    let other = evicting(1000);
    other.advance_to(Tick::new(LAST - 14));
    hashes(0, 5000).find(|key| other.insert_until(key, Tick::new(LAST - 8)).is_err()).expect("it gets full");
    // The first of these evicts the ticks up to `LAST - 8`. After that there is room for all.
    hashes(5000, 100).for_each(|key| _ = other.insert_until(&key, Tick::new(LAST)).unwrap());
    assert_eq!((other.live_len(), other.stats().expiry.unwrap().evicted_early_by), (100, 6));
    // Each keeps what is left of its life. Now the evicted ticks end beyond the largest one, and some entries do too.
    other.restart_clock(Tick::new(LAST - 2));
    assert_eq!(other.live_len(), 100);
    for merge in [ExpiringCuckooFilter::absorb, ExpiringCuckooFilter::unite] {
        let copy = other.empty_like().unwrap();
        assert_eq!(merge(&copy, &other), Ok(100), "all that it holds");
        assert!(hashes(5000, 100).all(|key| copy.contains(&key)));
        assert_eq!(copy.digest().unwrap(), other.digest().unwrap());
        copy.restart_clock(Tick::new(0));
        copy.advance_to(Tick::new(13));
        assert_eq!(copy.live_len(), 100, "for the rest of their lives, 14 ticks");
        copy.advance_to(Tick::new(14));
        assert_eq!(copy.live_len(), 0);
    }
}

/// Where the target has evicted the tick at which an entry expires, an insert of that entry fails. So the rest is added,
/// and the error says what was not.
#[test]
fn entries_whose_ticks_were_evicted_are_reported() {
    for merge in [ExpiringCuckooFilter::absorb, ExpiringCuckooFilter::unite] {
        let target = evicting(1000);
        target.advance_to(Tick::new(1000));
        hashes(0, 5000).find(|key| target.insert_until(key, Tick::new(1003)).is_err()).expect("it gets full");
        target.insert_until(&Raw(4711), Tick::new(1010)).unwrap();
        let other = target.empty_like().unwrap();
        for (nth, key) in (0..).zip(hashes(6000, 100)) {
            assert_eq!(other.insert_until(&key, Tick::new(1001 + nth % 5)), Ok(true));
        }
        let (before, evicted) = (target.live_len(), target.stats().expiry.unwrap().evicted);
        let error = merge(&target, &other).unwrap_err();
        let AbsorbError::Evicted { absorbed, rejected, up_to, .. } = error else { panic!("{error}") };
        assert_eq!((absorbed, rejected, up_to), (40, 60, Tick::new(1003)));
        for (nth, key) in (0..).zip(hashes(6000, 100)) {
            assert_eq!(target.contains(&key), nth % 5 >= 3, "those that expire later are in");
        }
        assert_eq!(target.live_len(), before + 40);
        let stats = target.stats();
        assert_eq!(stats.expiry.unwrap().evicted, evicted, "none of these was evicted: they were never in");
        assert!(error.to_string().contains("60") && error.to_string().contains("tick 1003"), "{error}");
        // The remedies: an empty filter has evicted nothing, and once the clock has passed these ticks, all is well.
        assert_eq!(merge(&target.empty_like().unwrap(), &other), Ok(100));
        for filter in [&target, &other] {
            filter.advance_to(Tick::new(1003));
        }
        assert_eq!(target.unite(&other), Ok(0));
    }
}

/// Another entry of the key that lives longer is all that a union needs.
#[test]
fn a_union_needs_no_entry_that_was_evicted_if_the_key_has_a_later_one() {
    let target = evicting(1000);
    target.advance_to(Tick::new(1000));
    hashes(0, 5000).find(|key| target.insert_until(key, Tick::new(1003)).is_err()).expect("it gets full");
    target.insert_until(&Raw(4711), Tick::new(1010)).unwrap();
    let other = target.empty_like().unwrap();
    other.insert_until(&Raw(4711), Tick::new(1002)).unwrap();
    assert_eq!(target.unite(&other), Ok(0));
    assert!(matches!(target.absorb(&other), Err(AbsorbError::Evicted { absorbed: 0, rejected: 1, .. })));
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
    assert!(matches!(error, AbsorbError::OverCapacity { len: 900, other_len: 950, .. }), "{error}");
    let full = expiring(1000, 14);
    full.advance_to(Tick::new(11));
    hashes(6000, full.capacity() - 40).for_each(|key| _ = full.insert_until(&key, Tick::new(20)).unwrap());
    let error = full.absorb(&other).unwrap_err();
    assert!(matches!(error, AbsorbError::OverCapacity { other_len: 50, .. }), "those that live by this clock: {error}");
    sum.advance_to(Tick::new(11));
    other.advance_to(Tick::new(11));
    assert_eq!(sum.absorb(&other), Ok(50));
    assert!(hashes(4000, 50).all(|key| sum.contains(&key)));
}
