//! What each error says under `{}`: everything, with the cause. What it says is not said again by a source.

mod support;

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use concurrent_cuckoo_filter::{
    AbsorbError, BuildError, ConcurrentCuckooFilter, CuckooMaplet, CuckooRateLimiter, ExpiringCuckooFilter,
    ExpiringInsertError, GrowableCuckooFilter, GrowableInsertError, InsertBatchError, InsertError, Limited,
    LimiterBuilder, MapletInsertError, QuotaError, ReserveError, Tick, TickError, ValueTooLarge,
};
use support::{chain, seeded};

type Fixed = ConcurrentCuckooFilter<u64, support::Seeded>;

fn fixed() -> Fixed {
    Fixed::with_capacity_and_hasher(10, seeded(1))
}

/// Says everything itself, on one line.
fn check<E: Error + 'static>(error: E) {
    let messages = chain(&error);
    assert_eq!(messages.len(), 1, "{error:?}: {messages:?}");
    assert!(!messages[0].contains('\n'), "{error:?}");
}

/// Inserts the key until that fails.
fn refused<E>(mut insert: impl FnMut() -> Result<(), E>) -> E {
    (0..100).find_map(|_| insert().err()).expect("copies fill the two buckets of a key")
}

#[test]
fn an_error_says_everything_itself() {
    let filter = fixed();
    check::<InsertError>(refused(|| filter.insert(&7)));
    check::<AbsorbError>(filter.absorb(&Fixed::with_capacity_and_hasher(10, seeded(2))).unwrap_err());
    check::<BuildError>(Fixed::builder_with_hasher(seeded(1)).build().unwrap_err());

    let growable = GrowableCuckooFilter::<u64, _>::builder_with_hasher(seeded(1)).max_capacity(50).build().unwrap();
    check::<GrowableInsertError>((0..1000).find_map(|key| growable.insert(&key).err()).expect("it is full"));
    check::<ReserveError>(growable.reserve(1000).unwrap_err());

    let expiring = ExpiringCuckooFilter::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).lifetime_in_ticks(15);
    let expiring = expiring.build().unwrap();
    check::<ExpiringInsertError>(expiring.insert(&7).unwrap_err());
    check::<TickError>(expiring.tick_at(SystemTime::now()).unwrap_err());
    let second = Duration::from_secs(1);
    let by_time =
        ExpiringCuckooFilter::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).lifetime(second).resolution(second);
    check::<TickError>(by_time.build().unwrap().tick_at(UNIX_EPOCH - second).unwrap_err());

    let maplet = CuckooMaplet::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).value_bits(4).build().unwrap();
    check::<MapletInsertError>(maplet.insert(&7, 16).unwrap_err());
    check::<ValueTooLarge>(maplet.replace(&7, 3, 16).unwrap_err());

    let limiter = CuckooRateLimiter::<u64, _>::builder_with_hasher(seeded(1)).allow(1, second).capacity(10);
    check::<BuildError>(limiter.clone().ticks_per_request(0).build().unwrap_err());
    let limiter = limiter.build().unwrap();
    check::<Limited>(limiter.check_n(&7, 2).unwrap_err());
    for (limit, period, burst) in
        [(0, second, 1), (100, second, 1), (1, 60 * second, 1), (1, second, 99), (7, 8 * second, 1)]
    {
        check::<QuotaError>(limiter.quota(limit, period, burst).unwrap_err());
    }
}

/// What the message advises helps, whether a limit is asked of a builder or of a limiter that is there.
#[test]
fn the_error_of_a_limit_advises_what_helps() {
    type Builder = LimiterBuilder<u64, support::Seeded>;

    let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
    let builder = || CuckooRateLimiter::<u64, _>::builder_with_hasher(seeded(1)).capacity(10).false_positive_rate(0.01);
    let not = |builder: Builder, says: &str| {
        let text = builder.plan().unwrap_err().to_string();
        assert!(text.ends_with(says), "{says}: {text}");
    };
    not(builder().allow(200_000, second), "is 10 µs, that of 1 tick; ask for a lower limit");
    let fast = builder().allow(10_000, second).burst(5);
    not(
        fast.clone().ticks_per_request(40),
        "is 400 µs, that of 40 ticks; ask for a lower limit, or for fewer ticks per request",
    );
    assert!(fast.ticks_per_request(10).plan().is_ok());
    let hourly = builder().allow(100_000, 60 * minute);
    not(hourly.clone(), "the limit is 57344; ask for a smaller burst (if none is given, it is the limit)");
    assert!(hourly.burst(57_344).plan().is_ok());
    let bursts = builder().allow(100, minute).burst(10_000);
    not(
        bursts.clone().ticks_per_request(8),
        "the limit is 7168; ask for a smaller burst (if none is given, it is the limit), or for \
        fewer ticks per request",
    );
    assert!(bursts.ticks_per_request(4).plan().is_ok());
    not(builder().allow(1, minute).ticks_per_request(60_000), "the limit is 0; ask for fewer ticks per request");

    let builder = builder().allow(100, minute).burst(20);
    let limiter = builder.clone().build().unwrap();
    let not = |limit, burst, says: &str| {
        let text = limiter.quota(limit, minute, burst).unwrap_err().to_string();
        assert!(text.ends_with(says), "{says}: {text}");
    };
    not(1000, 20, "or build the limiter with more ticks per request for quotas that are faster than its own limit");
    assert!(builder.clone().ticks_per_request(10).build().unwrap().quota(1000, minute, 20).is_ok());
    let slow = "or build the limiter with the limit and burst that take longest to repay";
    not(1, 20, &format!("its longest debt; ask for a higher limit, {slow}"));
    not(
        10,
        20,
        &format!(
            "a burst of 20 requests of 40 ticks each is too large: the limit is 2; ask for a smaller burst, {slow}"
        ),
    );
    let slower = builder.clone().allow(10, minute).ticks_per_request(40).build().unwrap();
    assert!(slower.quota(10, minute, 20).is_ok() && slower.quota(100, minute, 20).is_ok());
    not(100, 50, slow);
    let larger = builder.burst(50).build().unwrap();
    assert!(larger.quota(100, minute, 50).is_ok() && larger.quota(100, minute, 20).is_ok());

    let text = limiter.check_n(&7, 30).unwrap_err().to_string();
    assert!(text.contains("a cost of 30, more than the burst of 20"), "{text}");
}

/// The message of a batch says where it ended, and why. What to do comes with the reason.
#[test]
fn the_error_of_a_batch_has_that_of_the_key() {
    fn why<E: Error + PartialEq + 'static>(error: &InsertBatchError<E>, index: usize) -> String {
        let text = error.to_string();
        assert!(error.index == index && text.contains(&format!(" key {index} ")), "{text}");
        assert!(text.contains(&error.error.to_string()) && !text.contains("make room"), "{text}");
        assert_eq!(chain(error), std::slice::from_ref(&text));
        text
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

/// The file, the system's reason, and what to do: each once.
#[test]
#[cfg(feature = "snapshot")]
fn the_error_of_a_file_has_that_of_the_system() {
    use concurrent_cuckoo_filter::{LoadError, LoadPathError, SnapshotInfo};

    let missing = std::env::temp_dir().join("ccf-a-file-that-nothing-makes");
    let system = std::fs::read(&missing).unwrap_err().to_string();
    let errors: [LoadPathError; 3] = [
        Fixed::load_from_path(&missing, seeded(1), 1 << 20).unwrap_err(),
        SnapshotInfo::read_from_path(&missing).unwrap_err(),
        SnapshotInfo::verify_from_path(&missing).unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        for part in [&format!("{missing:?}: "), &system, "check the path", "build the filter"] {
            assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
        }
        assert_eq!(chain(&error), std::slice::from_ref(&text));
        // The reason alone, as `?` keeps it.
        let error = LoadError::from(error);
        assert!(matches!(error, LoadError::NotFound(_)), "{error:?}");
        assert_eq!(text, format!("{missing:?}: {error}"));
        assert_eq!(chain(&error), [error.to_string()]);
    }
    check::<LoadError>(Fixed::load(&b"an empty file"[..], seeded(1), 1 << 20).unwrap_err());
    check::<std::io::Error>(fixed().save_to_path(missing.join("file")).unwrap_err());
}

/// What an error of the reader is due to beyond its message is a source, and is not said twice.
#[test]
#[cfg(feature = "snapshot")]
fn a_cause_of_the_reader_is_not_lost() {
    use std::fmt;
    use std::io::{self, Read};

    #[derive(Debug)]
    struct Lost(io::Error);
    impl fmt::Display for Lost {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the download ended")
        }
    }
    impl Error for Lost {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    struct Failing;
    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(Lost(io::ErrorKind::ConnectionReset.into())))
        }
    }
    let error = Fixed::load(Failing, seeded(1), 1 << 20).unwrap_err();
    let [text, cause] = <[String; 2]>::try_from(chain(&error)).expect("two");
    assert!(text.contains("could not be read: the download ended; "), "{text}");
    assert_eq!(cause, io::Error::from(io::ErrorKind::ConnectionReset).to_string());
}

/// A rate that a message advises is accepted when it is pasted.
#[test]
fn the_rate_that_an_error_advises_is_accepted() {
    use concurrent_cuckoo_filter::{Encoding, FilterPlan, RecentCuckooFilter};

    fn check(build: impl Fn(f64) -> Result<FilterPlan, BuildError>) {
        let text = build(0.0).unwrap_err().to_string();
        let lowest =
            text.split("below ").nth(1).and_then(|rest| rest.split(';').next()).unwrap_or_else(|| panic!("{text}"));
        assert!(lowest.len() <= 8, "{text}");
        let plan = build(lowest.parse().unwrap()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(plan.max_false_positive_rate <= lowest.parse().unwrap(), "{plan}");
    }
    let filter = || Fixed::builder_with_hasher(seeded(1)).capacity(1000);
    check(|rate| filter().false_positive_rate(rate).plan());
    for encoding in [Encoding::Plain, Encoding::SemiSorted] {
        check(|rate| filter().encoding(encoding).false_positive_rate(rate).plan());
        let growable = || GrowableCuckooFilter::<u64>::builder().capacity(0).max_capacity(10).encoding(encoding);
        check(|rate| growable().false_positive_rate(rate).plan());
    }
    for bits in 1..=16 {
        let maplet = || CuckooMaplet::<u64>::builder().capacity(1000).value_bits(bits);
        check(|rate| maplet().false_positive_rate(rate).plan());
        let expiring = || ExpiringCuckooFilter::<u64>::builder().capacity(1000).lifetime_in_ticks((1 << bits) - 1);
        check(|rate| expiring().false_positive_rate(rate).plan());
    }
    for tolerance in [0.08, 0.02, 0.004] {
        let recent = || RecentCuckooFilter::<u64>::builder().last(1000).tolerance(tolerance);
        check(|rate| recent().false_positive_rate(rate).plan());
    }
    let least = RecentCuckooFilter::<u64>::builder().last(1000).tolerance(0.0).plan().unwrap_err().to_string();
    let least = least.split("at least ").nth(1).and_then(|rest| rest.split(' ').next()).expect("the least");
    RecentCuckooFilter::<u64>::builder().last(1000).tolerance(least.parse().unwrap()).plan().expect("it is accepted");
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
    let text = error.to_string();
    assert!(!text.contains(&filter.capacity().to_string()) && !text.contains("bytes"), "{text}");
}
