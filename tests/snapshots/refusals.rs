//! Snapshots that must not be loaded: forged, damaged, cut short, of another hasher, or too large. Each is refused
//! for its own reason.

use std::error::Error;
use std::io::{self, ErrorKind};

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, DefaultHashBuilder, FilterKind, LoadError, SnapshotInfo, StableHashBuilder,
};

use crate::filters::{Expiring, Filter, Growable, Maplet, Small, build, load, saved, small_snapshots, state};
use crate::forged::{Forged, assert_refused};
use crate::support::LAYOUTS;

#[test]
fn each_forged_field_is_refused_for_its_reason() {
    load::<Filter>(&Forged::new().bytes()).expect("nothing is wrong with this one");

    let forged = |change: &dyn Fn(&mut Forged)| {
        let mut forged = Forged::new();
        change(&mut forged);
        forged.refusal()
    };
    assert_refused!(forged(&|it| it.magic[1] = b'D'), LoadError::NotASnapshot, names "no snapshot");
    assert_refused!(
        forged(&|it| it.version = 2),
        LoadError::UnsupportedVersion { version: 2, supported: 3, .. },
        names "version 2", "reads only version 3"
    );
    assert_refused!(
        forged(&|it| it.kind = 2),
        LoadError::WrongKind { kind: 2, expected: FilterKind::Concurrent, .. },
        names "a chain of tables", "ConcurrentCuckooFilter", "rebuild"
    );
    assert_refused!(
        forged(&|it| it.kind = 6),
        LoadError::WrongKind { kind: 6, expected: FilterKind::Concurrent, .. },
        names "GrowableCuckooFilter", "ConcurrentCuckooFilter"
    );
    assert_refused!(
        forged(&|it| it.kind = 99),
        LoadError::WrongKind { kind: 99, expected: FilterKind::Concurrent, .. },
        names "number 99", "ConcurrentCuckooFilter"
    );
    for schema in [&b"u32"[..], b"", b"u64 and so on", &[0xff; 255]] {
        assert_refused!(
            forged(&|it| it.schema = schema.to_vec()),
            LoadError::OtherSchema { expected, .. } if expected == "u64",
            names "\"u64\" was expected"
        );
    }
    for flag in [2, 0xff] {
        assert_refused!(forged(&|it| it.flag = flag), LoadError::UnknownFlags { flags, .. } if *flags == flag, names format!("{flag:#04x}"));
    }
    assert_refused!(
        forged(&|it| it.position = 1 << 40),
        LoadError::UnexpectedPosition { position: 0x100_0000_0000, .. },
        names 1_u64 << 40
    );
    assert_refused!(
        forged(&|it| it.attached = u32::MAX),
        LoadError::AttachmentTooLong { len: 0xffff_ffff, most: 65_536, .. },
        names "4294967295", "65536"
    );
    assert_refused!(forged(&|it| it.attached = 65_537), LoadError::AttachmentTooLong { len: 65_537, .. }, names "65537");
    assert_refused!(forged(&|it| it.attached = 65_536), LoadError::Truncated { expected: 65_576, .. }, names "65576");
    assert_refused!(forged(&|it| it.probe ^= 1), LoadError::OtherHasher, names "hasher");
    for layout in [[0, 5, 14], [1, 4, 14], [1, 5, 13], [2, 5, 14], [0xff; 3], [0; 3]] {
        assert_refused!(
            forged(&|it| it.layout = layout),
            LoadError::UnknownLayout { encoding, slots, fingerprint_bits, .. }
                if [*encoding, *slots, *fingerprint_bits] == [layout[0] & 1, layout[1], layout[2]],
            names format!("encoding {}, {} slots and {} bits", layout[0] & 1, layout[1], layout[2])
        );
    }
    for buckets in [0, 3, 1 << 60, u64::MAX, u64::MAX - 1] {
        assert_refused!(
            forged(&|it| it.buckets = buckets),
            LoadError::InvalidBuckets { buckets: named, .. } if *named == buckets,
            names buckets
        );
    }
    // 32 GiB, and a little more.
    if cfg!(target_pointer_width = "64") {
        assert_refused!(
            forged(&|it| it.buckets = (1 << 32) - 2),
            LoadError::MemoryLimit { limit: 0x4000_0000, .. },
            names "34359738368".split_at(4).0, 1 << 30
        );
        assert_refused!(
            forged(&|it| it.buckets = 1 << 32),
            LoadError::InvalidBuckets { buckets: 0x1_0000_0000, largest: 0xffff_fffe, .. },
            names "4294967296"
        );
    } else {
        assert_refused!(
            forged(&|it| it.buckets = 1 << 34),
            LoadError::InvalidBuckets { buckets: 0x4_0000_0000, largest: 0x0fff_fffe, .. },
            names "17179869184"
        );
        assert_refused!(
            forged(&|it| it.buckets = 0x0fff_fffe),
            LoadError::MemoryLimit { limit: 0x4000_0000, .. },
            names 1 << 30
        );
    }
    assert_refused!(
        forged(&|it| it.count = 1),
        LoadError::WrongCount { stated: 1, counted: 0, .. },
        names "declares 1 ", "has 0"
    );
    // A fingerprint above an empty slot; a rank that is not the rank of any list; a nibble without a fingerprint.
    for word in [1, 0xffff << 50, 1 << 50] {
        assert_refused!(forged(&|it| it.words[1] = word), LoadError::DamagedBucket { bucket: 1, .. }, names "bucket 1");
    }
    let mut spare = Forged { layout: [0, 5, 12], words: vec![0, 1 << 60], ..Forged::new() };
    assert_refused!(spare.refusal(), LoadError::DamagedBucket { bucket: 1, .. }, names "bucket 1");
    spare.words[1] = 1;
    spare.count = 1;
    load::<Filter>(&spare.bytes()).expect("this one is as it should be");
}

#[test]
fn a_forged_snapshot_of_a_maplet_is_refused_for_its_reason() {
    load::<Maplet>(&Forged::of_maplet().bytes()).expect("nothing is wrong with this one");

    for value_bits in [0, 17, 255] {
        assert_refused!(
            Forged { head: vec![value_bits], ..Forged::of_maplet() }.refusal(),
            LoadError::InvalidValueBits { value_bits: named, most: 16, .. } if *named == value_bits,
            names format!("values of {value_bits} bits"), "1 to 16"
        );
    }
    // Value bits that do not fit the layout, and layouts that only filters without values have.
    for (value_bits, layout) in [
        (4, [1, 5, 14]),
        (5, [1, 5, 10]),
        (3, [1, 5, 10]),
        (8, [1, 5, 6]),
        (16, [1, 3, 6]),
        (4, [0, 4, 12]),
        (4, [0; 3]),
    ] {
        assert_refused!(
            Forged { head: vec![value_bits], layout, ..Forged::of_maplet() }.refusal(),
            LoadError::UnknownLayout { encoding, slots, fingerprint_bits, .. }
                if [*encoding, *slots, *fingerprint_bits] == [layout[0] & 1, layout[1], layout[2]],
            names format!("encoding {}, {} slots and {} bits", layout[0] & 1, layout[1], layout[2])
        );
    }
    load::<Filter>(&Forged { buckets: 1, words: vec![0], ..Forged::new() }.bytes())
        .expect("a filter may have one bucket");
    for buckets in [0, 1, 3, u64::MAX] {
        assert_refused!(
            Forged { buckets, words: vec![0], ..Forged::of_maplet() }.refusal(),
            LoadError::InvalidBuckets { buckets: named, .. } if *named == buckets,
            names buckets
        );
    }
    let mut count = Forged { count: 1, ..Forged::of_maplet() };
    assert_refused!(count.refusal(), LoadError::WrongCount { stated: 1, counted: 0, .. }, names "declares 1 ", "has 0");
    // The lowest bit of a fingerprint and of a value in the last lane, which comes after the empty lanes.
    let (of_fingerprint, of_value) = (1 << 40, 1 << 46);
    count.words[1] = of_fingerprint | of_value;
    load::<Maplet>(&count.bytes()).expect("this one is as it should be");
    // A value without a fingerprint.
    count.words[1] = of_value;
    assert_refused!(count.refusal(), LoadError::DamagedBucket { bucket: 1, .. }, names "bucket 1");
    let mut plain = Forged { head: vec![16], layout: [0, 2, 16], count: 2, ..Forged::of_maplet() };
    plain.words[1] = 7 << 16 | 5 | 5 << 32;
    load::<Maplet>(&plain.bytes()).expect("this one is as it should be");
    for word in [7 << 16, 7 << 48 | 5, 7 << 16 | 5 << 32] {
        plain.words[1] = word;
        assert_refused!(plain.refusal(), LoadError::DamagedBucket { bucket: 1, .. }, names "bucket 1");
    }
}

#[test]
fn a_snapshot_of_one_type_is_not_loaded_as_another() {
    use FilterKind::{Concurrent, Expiring as Expires, Growable as Grows, Maplet as Maps};
    let kinds = [(1, Concurrent), (4, Maps), (5, Expires), (6, Grows)];
    for Small { of, bytes, .. } in small_snapshots() {
        let refusals = [
            load::<Filter>(&bytes).err(),
            load::<Maplet>(&bytes).err(),
            load::<Expiring>(&bytes).err(),
            load::<Growable>(&bytes).err(),
        ];
        let (_, own) = kinds.into_iter().find(|&(number, _)| number == bytes[10]).expect("a kind");
        for ((_, other), refusal) in kinds.into_iter().zip(refusals) {
            assert_eq!(refusal.is_none(), other == own, "{of} as {other}");
            let Some(refusal) = refusal else { continue };
            assert_refused!(
                refusal,
                LoadError::WrongKind { kind, expected, .. } if *kind == bytes[10] && *expected == other,
                names own, other
            );
        }
    }
}

/// Without loading, it is refused for the same reason. What is read from a header alone is no other than what it was.
#[test]
fn no_snapshot_of_which_a_bit_or_a_few_have_changed_is_loaded() {
    for Small { of, bytes, load, .. } in small_snapshots().step_by(if cfg!(miri) { 7 } else { 1 }) {
        let genuine = format!("{:?}", SnapshotInfo::read(&bytes[..]).unwrap());
        let refused = |damaged: &[u8], how: &str| {
            let loading = load(damaged, 1 << 30).expect_err(&format!("{how} of {of}"));
            let verifying = SnapshotInfo::verify(damaged).unwrap_err();
            assert_eq!(format!("{verifying:?}"), format!("{loading:?}"), "{how} of {of}");
            match SnapshotInfo::read(damaged) {
                Ok(info) => assert_eq!(format!("{info:?}"), genuine, "{how} of {of}"),
                Err(error) => assert_eq!(format!("{error:?}"), format!("{loading:?}"), "{how} of {of}"),
            }
        };
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            refused(&changed, &format!("bit {bit}"));
            // Reverses up to four bytes from here on, and changes the first of them.
            let end = bytes.len().min(bit / 8 + 4);
            changed.copy_from_slice(&bytes);
            changed[bit / 8..end].reverse();
            changed[bit / 8..end][0] ^= bit as u8 % 8;
            if changed != bytes {
                refused(&changed, &format!("bytes {}..{end}", bit / 8));
            }
        }
    }
}

#[test]
fn a_snapshot_that_is_cut_short_is_said_to_be() {
    for Small { bytes, head, load, .. } in small_snapshots() {
        for len in 0..bytes.len() {
            let error = load(&bytes[..len], 1 << 30).expect_err("it is cut short");
            let LoadError::Truncated { available, expected, .. } = error else { panic!("{len} bytes: {error:?}") };
            assert_eq!(available, len as u64);
            // The expected length is first that of the shortest snapshot. Once the length of the schema is known,
            // it includes the schema. From the header of the table on, it is the whole length.
            let all = bytes.len() as u64;
            let least = 76 + if len >= 20 { 3 } else { 0 };
            // In a longer head, the number that is cut short may end beyond that.
            let most = if head > 5 { least.max(len as u64 + 8) } else { least };
            let expectation = if len >= 59 + head { all..=all } else { least.max(len as u64 + 1)..=most };
            assert!(expectation.contains(&expected), "{len} bytes, {expected} expected");
            assert!(error.to_string().contains(&format!("there are {len} bytes of at least {expected};")), "{error}");
        }
    }
}

#[test]
fn another_hasher_is_refused_and_one_with_another_key_too() {
    let filter = build(LAYOUTS[5], 100);
    let bytes = saved(&filter);
    let other = StableHashBuilder::with_key([1; 16]);
    assert!(matches!(Filter::load(&bytes[..], other, 1 << 20), Err(LoadError::OtherHasher)));
    let other = ConcurrentCuckooFilter::<u64, _>::load(&bytes[..], DefaultHashBuilder::new(), 1 << 20);
    assert!(matches!(other, Err(LoadError::OtherHasher)));

    // A clone in the same process is the same hasher.
    let hasher = DefaultHashBuilder::new();
    let filter = ConcurrentCuckooFilter::<str, _>::with_capacity_and_hasher(100, hasher.clone());
    filter.insert("a").unwrap();
    let mut bytes = Vec::new();
    filter.save(&mut bytes).unwrap();
    let loaded = ConcurrentCuckooFilter::<str, _>::load(&bytes[..], hasher, 1 << 20).unwrap();
    assert!(loaded.contains("a"));
}

#[test]
fn the_memory_limit_is_exact() {
    for Small { of, bytes, needed, load, .. } in small_snapshots() {
        assert!(load(&bytes, needed).is_ok(), "{of}");
        assert_refused!(
            load(&bytes, needed - 1).expect_err("one byte too many"),
            LoadError::MemoryLimit { needed: named, limit, .. } if *named == needed && *limit == needed - 1,
            names needed, needed - 1
        );
    }
}

#[test]
fn the_message_names_why_a_reader_failed() {
    struct Failing;
    impl io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(ErrorKind::PermissionDenied, "not yours"))
        }
    }
    let error = Filter::load(Failing, state(), 1 << 20).unwrap_err();
    assert!(matches!(&error, LoadError::Io(error) if error.kind() == ErrorKind::PermissionDenied));
    assert!(error.to_string().contains("could not be read: not yours; "), "{error}");
    assert!(error.source().is_some_and(|source| error.to_string().contains(&source.to_string())), "{error:?}");
}
