//! What a snapshot is can be told without loading it, for the same reasons refused.

use std::fs;
use std::time::Duration;

use concurrent_cuckoo_filter::{
    Encoding, FilterKind, FilterPlan, GrowableCuckooFilter, LoadError, Loader, SnapshotInfo, StableHashBuilder, Tick,
    WhenFull,
};

use crate::files::Folder;
use crate::filters::{
    Expiring, Filter, Maplet, builder, expiring_builder, load, maplet_builder, saved, saved_expiring, saved_maplet,
    small_expiring, small_filters, small_maplets, small_snapshots, state,
};
use crate::forged::{Forged, ForgedClock, assert_refused};

type Growable = GrowableCuckooFilter<u64, StableHashBuilder>;

/// A filter that has grown, so that its table is not the first.
fn small_growable() -> Growable {
    let builder = Growable::builder_with_hasher(state()).capacity(10).max_capacity(5000);
    let filter = builder.encoding(Encoding::SemiSorted).build().unwrap();
    (0..300).for_each(|key| filter.insert(&key).unwrap());
    filter
}

fn saved_growable(filter: &Growable) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    bytes
}

/// The plan of a whole snapshot, in which so many keys are.
fn plan_of(bytes: &[u8], len: usize) -> FilterPlan {
    let mut rest = bytes;
    let info = SnapshotInfo::read(&mut rest).unwrap();
    assert!(rest.len() >= 8 * info.plan.layout.buckets, "only the header is read");
    assert_eq!((info.version, info.bytes, info.len), (3, bytes.len() as u64, None));
    assert_eq!((&*info.schema, info.position, &*info.attachment), ("u64", None, &[][..]));
    let mut followed = bytes.to_vec();
    followed.push(7);
    let mut rest = &followed[..];
    let verified = SnapshotInfo::verify(&mut rest).unwrap();
    assert_eq!(rest, [7], "what follows is left");
    assert_eq!((verified.plan, verified.len, verified.bytes), (info.plan, Some(len as u64), info.bytes));
    info.plan
}

#[test]
fn each_kind_of_snapshot_says_what_it_is() {
    for filter in small_filters() {
        let plan = plan_of(&saved(&filter), filter.len());
        assert_eq!(
            (plan.filter, plan.capacity, plan.slots),
            (FilterKind::Concurrent, filter.capacity(), filter.plan().slots)
        );
        assert_eq!(plan.memory_usage + size_of_val(&filter), filter.stats().memory_usage);
        assert_eq!(plan.max_false_positive_rate, filter.plan().max_false_positive_rate);
    }
    for maplet in small_maplets() {
        let plan = plan_of(&saved_maplet(&maplet), maplet.len());
        assert_eq!(
            (plan.filter, plan.capacity, plan.slots),
            (FilterKind::Maplet, maplet.capacity(), maplet.plan().slots)
        );
        assert_eq!(plan.layout.payload_bits, maplet.plan().layout.payload_bits);
        assert_eq!(plan.memory_usage + size_of_val(&maplet), maplet.stats().memory_usage);
    }
    for filter in small_expiring() {
        let bytes = saved_expiring(&filter);
        let plan = plan_of(&bytes, filter.len());
        assert_eq!(
            (plan.filter, plan.capacity, plan.slots),
            (FilterKind::Expiring, filter.capacity(), filter.plan().slots)
        );
        assert_eq!(plan.memory_usage + size_of_val(&filter), filter.stats().memory_usage);
        assert_eq!((plan.lifetime_in_ticks, plan.resolution), (Some(filter.plan().lifetime_in_ticks.unwrap()), None));
        assert_eq!(SnapshotInfo::read(&bytes[..]).unwrap().now, Some(Tick::new(28_500_000)));
    }
    let filter = small_growable();
    let plan = plan_of(&saved_growable(&filter), filter.len());
    assert_eq!(
        (plan.filter, plan.capacity, plan.slots),
        (FilterKind::Growable, filter.capacity(), filter.plan().slots)
    );
    assert_eq!(plan.memory_usage + size_of_val(&filter), filter.stats().memory_usage);
    assert_eq!(plan.max_capacity, Some(filter.max_capacity()));
}

#[test]
fn a_snapshot_says_the_plan_of_its_builder() {
    let same = |built: FilterPlan, bytes: Vec<u8>, of_value: usize| {
        let info = SnapshotInfo::read(&bytes[..]).unwrap();
        assert_eq!(info.plan.memory_usage + of_value, built.memory_usage);
        assert_eq!(info.plan.to_string(), built.to_string());
    };
    let builder = builder().capacity(12_345).false_positive_rate(1e-5);
    let filter = builder.clone().build().unwrap();
    same(builder.plan().unwrap(), saved(&filter), size_of_val(&filter));
    let builder = maplet_builder().capacity(12_345).value_bits(5);
    let maplet = builder.clone().build().unwrap();
    same(builder.plan().unwrap(), saved_maplet(&maplet), size_of_val(&maplet));
    let builder = expiring_builder().capacity(12_345).lifetime(Duration::from_secs(3600), Duration::from_secs(60));
    let builder = builder.when_full(WhenFull::EvictOldest);
    let expiring = builder.clone().build().unwrap();
    same(builder.plan().unwrap(), saved_expiring(&expiring), size_of_val(&expiring));
    assert_eq!(SnapshotInfo::read(&saved_expiring(&expiring)[..]).unwrap().now, None);
    let builder = Growable::builder_with_hasher(state()).capacity(12_345);
    let growable = builder.clone().build().unwrap();
    same(builder.plan().unwrap(), saved_growable(&growable), size_of_val(&growable));
}

/// A loader that expects the plan takes the snapshot, or refuses it by an error that has these words.
macro_rules! expect {
    ($filter:ty: $bytes:expr, $builder:expr, names $($named:expr),*) => {
        let loader = Loader::<$filter, _>::new(state(), 1 << 30).expect($builder.plan().unwrap());
        assert_refused!(loader.load(&$bytes[..]).unwrap_err(), LoadError::OtherSettings { .. }, names $($named),*);
    };
    ($filter:ty: $bytes:expr, $builder:expr) => {
        let loader = Loader::<$filter, _>::new(state(), 1 << 30).expect($builder.plan().unwrap());
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
    let bytes = saved_maplet(&maplet().build().unwrap());
    expect!(Maplet: bytes, maplet());
    expect!(Maplet: bytes, maplet().value_bits(3), names "13 + 4 bits", "+ 3 bits");

    let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    let expiring = || expiring_builder().capacity(1000).lifetime(hour, minute);
    let filter = expiring().build().unwrap();
    filter.advance_to(Tick::new(17));
    let bytes = saved_expiring(&filter);
    expect!(Expiring: bytes, expiring());
    // Lifetimes whose ends take as many bits, so that the layout is the same.
    expect!(Expiring: bytes, expiring().lifetime(hour - minute, minute), names "61 ticks of 60s", "60 ticks of 60s");
    expect!(Expiring: bytes, expiring().lifetime(2 * hour, 2 * minute), names "61 ticks of 60s", "61 ticks of 120s");
    expect!(Expiring: bytes, expiring().lifetime_in_ticks(61), names "61 ticks of 60s", "61 ticks,");
    expect!(Expiring: bytes, expiring().when_full(WhenFull::EvictOldest), names "Refuse", "EvictOldest");
    expect!(Expiring: bytes, expiring().capacity(1010), names "1003 keys", "1014 keys");

    let growable = || Growable::builder_with_hasher(state()).capacity(1000).max_capacity(50_000);
    let filter = growable().build().unwrap();
    for level in 0..3 {
        let bytes = saved_growable(&filter);
        expect!(Growable: bytes, growable());
        expect!(Growable: bytes, growable().memory_limit(1 << 20));
        expect!(Growable: bytes, growable().capacity(2000), names "from 480 buckets", "from 800 buckets");
        expect!(Growable: bytes, growable().max_capacity(100_000), names "up to");
        expect!(Growable: bytes, growable().false_positive_rate(1e-5), names "5 slots", "3 slots");
        assert_eq!(SnapshotInfo::read(&bytes[..]).unwrap().plan.slots, filter.plan().slots, "level {level}");
        filter.reserve(filter.capacity() + 1).unwrap();
    }
}

/// Nothing is read or allocated for a filter of other settings, and other reasons to refuse it come as they would.
#[test]
fn settings_are_compared_before_the_buckets_are_read() {
    let bytes = saved(&builder().capacity(100_000).build().unwrap());
    let loader = |limit| Loader::<Filter, _>::new(state(), limit).expect(builder().capacity(10).plan().unwrap());
    assert!(matches!(loader(1000).load(&bytes[..200]), Err(LoadError::OtherSettings { .. })));
    let other = loader(1 << 30).schema("user");
    assert!(matches!(other.load(&bytes[..]), Err(LoadError::OtherSchema { .. })));
}

#[cfg(feature = "serde")]
#[test]
fn settings_are_compared_in_formats_of_serde_too() {
    use serde::de::DeserializeSeed;

    let filter = builder().capacity(100).build().unwrap();
    let json = serde_json::to_string(&filter).unwrap();
    let binary = postcard::to_stdvec(&filter).unwrap();
    let loader =
        |capacity| Loader::<Filter, _>::new(state(), 1 << 20).expect(builder().capacity(capacity).plan().unwrap());
    for capacity in [100, 1000] {
        let from_json = loader(capacity).deserialize(&mut serde_json::Deserializer::from_str(&json));
        let from_binary = loader(capacity).deserialize(&mut postcard::Deserializer::from_bytes(&binary));
        assert_eq!((from_json.is_ok(), from_binary.is_ok()), (capacity == 100, capacity == 100));
    }
}

#[test]
fn what_the_caller_has_added_is_told() {
    let filter = builder().capacity(10).schema("user, version 2").build().unwrap();
    let mut bytes = Vec::new();
    filter.begin_save().unwrap().position(0).attachment(*b"eu-west").write_to(&mut bytes).unwrap();
    let info = SnapshotInfo::read(&bytes[..]).unwrap();
    assert_eq!((&*info.schema, info.position, &*info.attachment), ("user, version 2", Some(0), &b"eu-west"[..]));
    assert_eq!(info.bytes, bytes.len() as u64);
}

/// Whatever bit is flipped and wherever the bytes end, the reason is that of loading. What is read from a header alone
/// is no other than what it was.
#[test]
fn damage_is_refused_as_by_loading() {
    let growable = saved_growable(&small_growable());
    let load_growable = |bytes: &[u8]| Growable::load(bytes, state(), 1 << 30).map(drop);
    let others = small_snapshots().step_by(if cfg!(miri) { 7 } else { 1 });
    let others =
        others.map(|small| (small.bytes, Box::new(move |bytes: &[u8]| (small.load)(bytes, 1 << 30)) as Box<_>));
    type Load<'a> = Box<dyn Fn(&[u8]) -> Result<(), LoadError> + 'a>;
    let all: Vec<(Vec<u8>, Load<'_>)> = others.chain([(growable, Box::new(load_growable) as Box<_>)]).collect();
    for (bytes, load) in all {
        let genuine = format!("{:?}", SnapshotInfo::read(&bytes[..]).unwrap());
        let check = |damaged: &[u8], how: &str| {
            let (loading, verifying) = (load(damaged).unwrap_err(), SnapshotInfo::verify(damaged).unwrap_err());
            assert_eq!(format!("{verifying:?}"), format!("{loading:?}"), "{how}");
            match SnapshotInfo::read(damaged) {
                Ok(info) => assert_eq!(format!("{info:?}"), genuine, "{how}"),
                Err(error) => assert_eq!(format!("{error:?}"), format!("{loading:?}"), "{how}"),
            }
        };
        for bit in (0..8 * bytes.len()).step_by(if bytes.len() > 1000 { 13 } else { 1 }) {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            check(&damaged, &format!("bit {bit}"));
        }
        (0..bytes.len()).for_each(|len| check(&bytes[..len], &format!("{len} bytes")));
    }
}

#[test]
fn a_forged_snapshot_is_refused_for_its_reason() {
    SnapshotInfo::verify(&Forged::new().bytes()[..]).expect("nothing is wrong with this one");
    let info = |change: &dyn Fn(&mut Forged)| {
        let mut forged = Forged::new();
        change(&mut forged);
        SnapshotInfo::read(&forged.bytes()[..])
    };
    let refusal = |change: &dyn Fn(&mut Forged)| info(change).unwrap_err();
    assert_refused!(
        refusal(&|it| it.version = 4),
        LoadError::UnsupportedVersion { version: 4, supported: 3, .. },
        names "version 4", "only version 3"
    );
    assert_refused!(refusal(&|it| it.kind = 2), LoadError::UnknownKind { kind: 2, .. }, names "a chain of tables", "rebuild");
    assert_refused!(refusal(&|it| it.kind = 3), LoadError::UnknownKind { kind: 3, .. }, names "RotatingCuckooFilter");
    assert_refused!(refusal(&|it| it.kind = 99), LoadError::UnknownKind { kind: 99, .. }, names "number 99");
    assert_refused!(refusal(&|it| it.flag = 2), LoadError::UnknownFlags { flags: 2, .. }, names "0x02");
    assert_refused!(refusal(&|it| it.attached = 65_537), LoadError::AttachmentTooLong { .. }, names 65_537);
    assert_refused!(refusal(&|it| it.layout = [0, 5, 14]), LoadError::UnknownLayout { encoding: 0, .. }, names "encoding 0");
    assert_refused!(refusal(&|it| it.buckets = 3), LoadError::InvalidBuckets { buckets: 3, .. }, names 3);
    let odd_clock = Forged::of_expiring(&ForgedClock { longest: 16, ..ForgedClock::known() });
    assert_refused!(SnapshotInfo::read(&odd_clock.bytes()[..]).unwrap_err(), LoadError::InvalidClock { .. }, names 16);

    // Neither the hasher nor the schema is known, so none is another one.
    assert_eq!(info(&|it| it.probe ^= 1).unwrap().schema, "u64");
    assert_eq!(info(&|it| it.schema = b"x\xff".to_vec()).unwrap().schema, "x\u{fffd}");

    // A header says nothing of the words.
    let changes: [&dyn Fn(&mut Forged); 2] = [&|it| it.count = 1, &|it| it.words[1] = 1];
    for change in changes {
        info(change).unwrap();
        let mut forged = Forged::new();
        change(&mut forged);
        let (verifying, loading) = (SnapshotInfo::verify(&forged.bytes()[..]), load(&forged.bytes()));
        assert_eq!(format!("{:?}", verifying.unwrap_err()), format!("{:?}", loading.unwrap_err()));
    }
}

#[test]
fn a_file_of_another_length_is_refused() {
    let folder = Folder::new("inspected");
    let path = folder.0.join("filter.ccf");
    let bytes = saved(&builder().capacity(1000).build().unwrap());
    for (bytes, expected) in [
        (&bytes[..], None),
        (&bytes[..bytes.len() - 1], Some("Truncated")),
        (&[&bytes[..], b"x"].concat(), Some("TrailingBytes")),
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
