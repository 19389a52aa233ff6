//! What a snapshot is can be told without loading it, for the same reasons refused.

use std::fs;
use std::time::Duration;

use concurrent_cuckoo_filter::{Encoding, LoadError, Loader, SnapshotInfo, SnapshotMismatch, Tick, WhenFull};

use crate::files::Folder;
use crate::filters::{Expiring, Filter, Growable, Maplet, builder, expiring_builder, maplet_builder, saved, state};
use crate::forged::{Forged, assert_names};
use crate::kinds::{Table, in_each_layout};
use crate::support::scattered;
use crate::{kinds, support};

fn says_what_it_is<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let filter = new(1000);
    (0..700).for_each(|nth| assert_eq!(filter.insert(&(scattered(nth), number(nth))), Ok(true)));
    let bytes = filter.saved();
    let mut rest = &bytes[..];
    let info = SnapshotInfo::read(&mut rest).unwrap();
    assert!(rest.len() >= 8 * info.plan.layout.buckets, "only the header is read");
    assert_eq!((info.version, info.bytes, info.len), (4, bytes.len() as u64, None));
    assert_eq!((&*info.schema, info.position, &*info.attachment), ("snapshots::support::Raw", None, &[][..]));
    let followed = [&bytes[..], &[7]].concat();
    let mut rest = &followed[..];
    let verified = SnapshotInfo::verify(&mut rest).unwrap();
    assert_eq!(rest, [7], "what follows is left");
    assert_eq!((&verified.plan, verified.len, verified.bytes), (&info.plan, Some(700), info.bytes));
    let mut plan = filter.plan();
    plan.memory_usage -= size_of::<F>();
    plan.max_memory_usage = plan.max_memory_usage.map(|bytes| bytes - size_of::<F>());
    assert_eq!((info.plan.memory_usage, info.plan.to_string()), (plan.memory_usage, plan.to_string()));
}

#[test]
fn each_snapshot_says_what_it_is() {
    in_each_layout!(says_what_it_is);
}

/// A loader that expects the plan takes the snapshot, or refuses it by an error that has these words.
macro_rules! expect {
    ($filter:ty: $bytes:expr, $builder:expr, names $($named:expr),*) => {
        let loader = Loader::<$filter, _>::new(state(), 1 << 30).expect_plan($builder.plan().unwrap());
        let refusal = loader.load(&$bytes[..]).err().expect("it has other settings");
        assert_names(&refusal, "Mismatch(Settings", &[$(&$named.to_string()),*]);
    };
    ($filter:ty: $bytes:expr, $builder:expr) => {
        let loader = Loader::<$filter, _>::new(state(), 1 << 30).expect_plan($builder.plan().unwrap());
        loader.clone().load(&$bytes[..]).unwrap();
        loader.load(&$bytes[..]).unwrap();
    };
}

#[test]
fn only_a_snapshot_of_the_expected_settings_is_loaded() {
    // A filter for 1,000,000 keys says 1,000,001 or so.
    let one = || builder().capacity(1_000_000);
    let bytes = saved(&one().build().unwrap());
    expect!(Filter: bytes, one());
    expect!(Filter: bytes, one().false_positive_rate(0.0008)); // the same layout
    let (planned, larger) = (one().plan().unwrap(), one().capacity(1_100_000));
    expect!(Filter: bytes, larger, names planned.capacity, planned.layout.buckets, larger.plan().unwrap().capacity);
    expect!(Filter: bytes, one().false_positive_rate(1e-5), names "5 slots with 14 bits", "3 slots");
    expect!(Filter: bytes, one().encoding(Encoding::Plain), names "semi-sorted", "plain");
    expect!(Filter: bytes, maplet_builder().capacity(1_000_000).value_bits(4), names "CuckooMaplet");

    let maplet = || maplet_builder().capacity(1000).value_bits(4);
    let bytes = saved(&maplet().build().unwrap());
    expect!(Maplet: bytes, maplet());
    expect!(Maplet: bytes, maplet().value_bits(3), names "13 + 4 bits", "+ 3 bits");

    let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    let expiring = || expiring_builder().capacity(1000).lifetime(hour).resolution(minute);
    let filter = expiring().build().unwrap();
    filter.advance_to(Tick::new(17));
    let bytes = saved(&filter);
    expect!(Expiring: bytes, expiring());
    // Lifetimes whose ends take as many bits, so that the layout is the same.
    expect!(Expiring: bytes, expiring().lifetime(hour - minute).resolution(minute), names "1 h (61 ticks of 1 min)", "59 min (60 ticks of 1 min)");
    expect!(Expiring: bytes, expiring().lifetime(2 * hour).resolution(2 * minute), names "1 h (61 ticks of 1 min)", "2 h (61 ticks of 2 min)");
    expect!(Expiring: bytes, expiring_builder().capacity(1000).lifetime_in_ticks(61), names "1 h (61 ticks of 1 min)", "61 ticks,");
    expect!(Expiring: bytes, expiring().when_full(WhenFull::EvictSoonest), names "Refuse", "EvictSoonest");
    expect!(Expiring: bytes, expiring().capacity(1010), names "1003 keys", "1014 keys");

    let growable = || Growable::builder_with_hasher(state()).capacity(1000).max_capacity(50_000);
    let filter = growable().build().unwrap();
    for level in 0..3 {
        let bytes = saved(&filter);
        expect!(Growable: bytes, growable());
        expect!(Growable: bytes, growable().memory_limit(1 << 20));
        expect!(Growable: bytes, growable().capacity(2000), names "from 512 buckets", "from 832 buckets");
        expect!(Growable: bytes, growable().max_capacity(100_000), names "up to");
        expect!(Growable: bytes, growable().load_while_growing(0.86), names "load 0.85 while", "load 0.86 while");
        expect!(Growable: bytes, growable().false_positive_rate(1e-5), names "5 slots", "3 slots");
        assert_eq!(SnapshotInfo::read(&bytes[..]).unwrap().plan.slots, filter.plan().slots, "level {level}");
        filter.reserve(filter.capacity() + 1).unwrap();
    }
}

/// Nothing is read or allocated for a filter of other settings, and other reasons to refuse it come as they would.
#[test]
fn settings_are_compared_before_the_buckets_are_read() {
    let bytes = saved(&builder().capacity(100_000).build().unwrap());
    let loader = |limit| Loader::<Filter, _>::new(state(), limit).expect_plan(builder().capacity(10).plan().unwrap());
    assert!(matches!(loader(1000).load(&bytes[..200]), Err(LoadError::Mismatch(SnapshotMismatch::Settings { .. }))));
    let other = loader(1 << 30).schema("user");
    assert!(matches!(other.load(&bytes[..]), Err(LoadError::Mismatch(SnapshotMismatch::Schema { .. }))));
}

#[cfg(feature = "serde")]
#[test]
fn settings_are_compared_in_formats_of_serde_too() {
    use serde::de::DeserializeSeed;

    let filter = builder().capacity(100).build().unwrap();
    let json = serde_json::to_string(&filter).unwrap();
    let binary = postcard::to_stdvec(&filter).unwrap();
    let loader =
        |capacity| Loader::<Filter, _>::new(state(), 1 << 20).expect_plan(builder().capacity(capacity).plan().unwrap());
    for capacity in [100, 1000] {
        let from_json = loader(capacity).deserialize(&mut serde_json::Deserializer::from_str(&json));
        let from_binary = loader(capacity).deserialize(&mut postcard::Deserializer::from_bytes(&binary));
        assert_eq!((from_json.is_ok(), from_binary.is_ok()), (capacity == 100, capacity == 100));
    }
}

/// Other reasons are those of loading (`Forged::refusal`).
#[test]
fn neither_the_kind_nor_the_hasher_nor_the_schema_need_be_known() {
    let info = |change: &dyn Fn(&mut Forged)| {
        let mut forged = Forged::new();
        change(&mut forged);
        SnapshotInfo::read(&forged.bytes()[..])
    };
    for kind in [0, 2, 3, 9, 99] {
        let refusal = info(&|it| it.kind = kind).unwrap_err();
        assert_names(&refusal, &format!("Unsupported(Kind {{ kind: {kind} }}"), &[&format!("number {kind}")]);
    }
    assert_eq!(info(&|it| it.probe ^= 1).unwrap().schema, "u64");
    assert_eq!(info(&|it| it.schema = b"x\xff".to_vec()).unwrap().schema, "x\u{fffd}");
    // A header says nothing of the words.
    info(&|it| it.words[1] = 1).unwrap();
}

#[test]
fn a_file_of_another_length_is_refused() {
    let folder = Folder::new("inspected");
    let path = folder.0.join("filter.ccf");
    let bytes = saved(&builder().capacity(1000).build().unwrap());
    for (bytes, expected) in [
        (&bytes[..], None),
        (&bytes[..bytes.len() - 1], Some("Damaged(Truncated")),
        (&[&bytes[..], b"x"].concat(), Some("Damaged(TrailingBytes")),
    ] {
        fs::write(&path, bytes).unwrap();
        for info in [SnapshotInfo::read_from_path(&path), SnapshotInfo::verify_from_path(&path)] {
            let name = info.err().map(|error| format!("{:?}", error.error));
            assert!(
                name.as_deref().zip(expected).is_none_or(|(name, expected)| name.starts_with(expected))
                    && name.is_some() == expected.is_some(),
                "{name:?}"
            );
        }
    }
}
