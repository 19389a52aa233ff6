//! Snapshots that must not be loaded: forged, damaged, cut short, or of another hasher. Each is refused for its own
//! reason.

use std::error::Error;
use std::io::{self, ErrorKind};

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, DefaultHashBuilder, FromSnapshot, LoadError, SnapshotDamage, SnapshotInfo,
    SnapshotMismatch, StableHashBuilder, Viewed,
};

use crate::agreed::agreed;
use crate::filters::{Filter, build, saved, small, small_growable, state};
use crate::forged::{Forged, ForgedClock, assert_names, refused};
use crate::kinds::{Expiring, Growable, Hasher, Maplet, Table, in_each_layout};
use crate::support::LAYOUTS;
use crate::{kinds, support};

#[test]
fn each_forged_field_is_refused_for_its_reason() {
    let new = Forged::new;
    new().load().expect("nothing is wrong with this one");
    Forged { buckets: 1, words: vec![0], ..new() }.load().expect("a filter may have one bucket");
    for (forged, shown, words) in [
        (Forged { magic: *b"\x89DCF\r\n\x1a\n", ..new() }, "Damaged(NotASnapshot", &["not a snapshot"][..]),
        (
            Forged { version: 2, ..new() },
            "Unsupported(Version { version: 2, supported: 4 }",
            &["version 2", "reads only version 4"],
        ),
        (Forged { kind: 2, ..new() }, "Unsupported(Kind { kind: 2 }", &["number 2"]),
        (Forged { kind: 99, ..new() }, "Unsupported(Kind { kind: 99 }", &["number 99"]),
        (
            Forged { position: 1 << 40, ..new() },
            "Damaged(UnexpectedPosition { position: 1099511627776 }",
            &["1099511627776"],
        ),
        (
            Forged { attached: u32::MAX, ..new() },
            "Damaged(AttachmentTooLong { len: 4294967295, limit: 65536 }",
            &["4294967295", "65536"],
        ),
        (Forged { attached: 65_537, ..new() }, "Damaged(AttachmentTooLong { len: 65537,", &["65537"]),
        (Forged { attached: 65_536, ..new() }, "Damaged(Truncated", &["at least 65576;"]),
        (Forged { probe: new().probe ^ 1, ..new() }, "Mismatch(Hasher", &["hasher"]),
        (Forged { count: 1, ..new() }, "Damaged(WrongCount { declared: 1, counted: 0 }", &["declares 1 ", "has 0"]),
    ] {
        refused(&forged, shown, words);
    }
    for schema in [&b"u32"[..], b"", b"u64 and so on", &[0xff; 255]] {
        refused(&Forged { schema: schema.to_vec(), ..new() }, "Mismatch(Schema", &["\"u64\" was expected"]);
    }
    for flag in [2, 0xff] {
        let shown = format!("Unsupported(Flags {{ flags: {flag} }}");
        refused(&Forged { flag, ..new() }, &shown, &[&format!("{flag:#04x}")]);
    }
    for layout in [[0, 5, 14], [1, 4, 14], [1, 5, 13], [2, 5, 14], [0xff; 3], [0; 3]] {
        is_unknown(&Forged { layout, ..new() });
    }
    for buckets in [0, 3, 1 << 60, u64::MAX, u64::MAX - 1] {
        are_invalid(&Forged { buckets, ..new() });
    }
    // 32 GiB, and a little more.
    let (most, beyond) = if cfg!(target_pointer_width = "64") { (0xffff_fffe, 1 << 32) } else { (0xfff_fffe, 1 << 34) };
    let error = Forged { buckets: most, ..new() }.load().unwrap_err();
    let needed_beyond = |bytes: u64| matches!(error, LoadError::MemoryLimit { needed, .. } if needed as u64 > bytes);
    assert!(needed_beyond(8 * most) && error.to_string().contains("1073741824"), "{error}");
    are_invalid(&Forged { buckets: beyond, ..new() });
    // A fingerprint above an empty slot; a rank that is not the rank of any list; a nibble without a fingerprint.
    for word in [1, 0xffff << 50, 1 << 50] {
        is_damaged(&Forged { words: vec![0, word], ..new() });
    }
    let spare = Forged { layout: [0, 5, 12], words: vec![0, 1 << 60], ..new() };
    is_damaged(&spare);
    Forged { words: vec![0, 1], count: 1, ..spare }.load().expect("this one is as it should be");
}

#[track_caller]
fn is_unknown(forged: &Forged) {
    let [encoding, slots, bits] = forged.layout;
    let encoding = encoding & 1;
    refused(
        forged,
        &format!("Unsupported(Layout {{ encoding: {encoding}, slots: {slots}, fingerprint_bits: {bits} }}"),
        &[&format!("encoding {encoding}, {slots} slots and {bits} bits")],
    );
}

#[track_caller]
fn are_invalid(forged: &Forged) {
    let buckets = forged.buckets;
    refused(forged, &format!("Damaged(InvalidBuckets {{ buckets: {buckets},"), &[&buckets.to_string()]);
}

#[track_caller]
fn is_damaged(forged: &Forged) {
    refused(forged, "Damaged(InvalidBucket { bucket: 1 }", &["bucket 1"]);
}

/// Of a maplet and of a filter whose entries expire, with values or ends of so many bits.
#[test]
fn a_table_that_does_not_fit_its_payload_is_refused() {
    let clock = || ForgedClock { longest: 7, place: 0, ..ForgedClock::known() };
    let of_expiring = |expiry_bits| Forged::of_expiring(&ForgedClock { expiry_bits, ..clock() });
    for of in [&Forged::of_maplet as &dyn Fn(u8) -> Forged, &of_expiring] {
        of(4).load().expect("nothing is wrong with this one");
        for (bits, layout) in [
            (4, [1, 5, 14]),
            (5, [1, 5, 10]),
            (3, [1, 5, 10]),
            (8, [1, 5, 6]),
            (16, [1, 3, 6]),
            (4, [0, 4, 12]),
            (4, [0; 3]),
        ] {
            is_unknown(&Forged { layout, ..of(bits) });
        }
        for buckets in [0, 1, 3, u64::MAX] {
            are_invalid(&Forged { buckets, words: vec![0], ..of(4) });
        }
        // The lowest bit of a fingerprint and of a payload in the last lane, which comes after the empty lanes.
        let (of_fingerprint, of_payload) = (1 << 40, 1 << 46);
        let entry = Forged { words: vec![0, of_fingerprint | of_payload], count: 1, ..of(4) };
        entry.load().expect("this one is as it should be");
        is_damaged(&Forged { words: vec![0, of_payload], ..entry });
    }
    for value_bits in [0, 17, 255] {
        let shown = format!("Damaged(InvalidValueBits {{ value_bits: {value_bits}, limit: 16 }}");
        refused(&Forged::of_maplet(value_bits), &shown, &[&format!("values of {value_bits} bits"), "1 to 16"]);
    }
    let plain = |word| Forged { layout: [0, 2, 16], count: 2, words: vec![0, word], ..Forged::of_maplet(16) };
    plain(7 << 16 | 5 | 5 << 32).load().expect("this one is as it should be");
    for word in [7 << 16, 7 << 48 | 5, 7 << 16 | 5 << 32] {
        is_damaged(&plain(word));
    }
}

#[test]
fn each_forged_field_of_a_growable_filter_is_refused_for_its_reason() {
    let genuine = Forged::of(&saved(&small_growable()));
    genuine.load().expect("nothing is wrong with this one");
    let with_head = |place: usize, bytes: &[u8]| {
        let mut forged = genuine.clone();
        forged.head[place..place + bytes.len()].copy_from_slice(bytes);
        forged
    };
    let number = |place: usize| u64::from_le_bytes(genuine.head[place..place + 8].try_into().unwrap());
    let (base, doublings, first, largest) = (genuine.head[1], genuine.head[2], number(3), number(11));
    assert_eq!(genuine.head[0], 255, "no encoding was asked for");
    for encoding in [2, 254] {
        let shown = format!("Unsupported(Encoding {{ encoding: {encoding} }}");
        refused(&with_head(0, &[encoding]), &shown, &[&encoding.to_string()]);
    }
    // Bases that are too short or too long, largest sizes below the first one and beyond all, and slots of more than 32 bits.
    for [base, doublings] in [[0, doublings], [7, doublings], [33, 5], [base, 0], [base, 4], [base, 255], [32, 6]] {
        let shown = format!(
            "Damaged(InvalidSizes {{ buckets: {first}, max_buckets: {largest}, base_bits: {base}, doublings: {doublings} }}"
        );
        refused(&with_head(1, &[base, doublings]), &shown, &[]);
    }
    for buckets in [0u64, 2, 16, 33, 48, 1 << 31, 1 << 32, (1 << 32) + 32, 1 << 63, u64::MAX] {
        let shown = format!("Damaged(InvalidSizes {{ buckets: {buckets},");
        refused(&with_head(3, &buckets.to_le_bytes()), &shown, &[&buckets.to_string()]);
    }
    for most in [0, first - 32, largest + 1, (1 << doublings) + 32, u64::MAX] {
        let shown = format!("Damaged(InvalidSizes {{ buckets: {first}, max_buckets: {most},");
        refused(&with_head(11, &most.to_le_bytes()), &shown, &[&most.to_string()]);
    }
    for (load, declared) in [
        (0.0, "0"),
        (0.699, "0.699"),
        (0.951, "0.951"),
        (-0.85, "-0.85"),
        (f64::INFINITY, "infinity"),
        (f64::NAN, "NaN"),
    ] {
        let shown = format!("Damaged(InvalidLoadWhileGrowing {{ load_while_growing: {load:?} }}");
        refused(
            &with_head(19, &load.to_le_bytes()),
            &shown,
            &["is damaged", &format!(" of {declared}, "), "from 0.7 to 0.95"],
        );
    }
    // Sizes that a filter can have, but not one with these words.
    let buckets = genuine.buckets;
    refused(&with_head(3, &(buckets + 32).to_le_bytes()), "Damaged(InvalidBuckets", &[]);
    refused(&with_head(11, &(buckets - 32).to_le_bytes()), "Damaged(InvalidBuckets", &[]);
    for place in 0..3 {
        let mut forged = genuine.clone();
        forged.layout[place] = 77;
        refused(&forged, "Unsupported(Layout", &[]);
    }
    for buckets in [0, 1, 30, buckets - 1, buckets + 2, largest + 32, 1 << 40, u64::MAX] {
        are_invalid(&Forged { buckets, ..genuine.clone() });
    }
    // No key is stored as this: the eight low bits of a slot that is taken are never all 0.
    assert_eq!(genuine.layout[0], 0, "the layout is plain");
    let mut forged = genuine.clone();
    forged.words[1] = 1 << 8;
    is_damaged(&forged);
    // A slot may have more bits than are stored at a size. The others are 0.
    let [slots, bits] = [1, 2].map(|nth| u32::from(genuine.layout[nth]));
    assert!(bits < 64 / slots, "without such a slot the test shows nothing");
    forged.words[1] = 1 | 1 << bits;
    is_damaged(&forged);
    refused(&Forged { count: genuine.count ^ 1, ..genuine }, "Damaged(WrongCount", &[]);
}

fn is_loaded_as_its_own_type_only<F: Table>(new: impl Fn(usize) -> F, number: impl Fn(u64) -> u64) {
    let bytes = small(new, number).saved();
    for (name, refusal) in [
        (support::Filter::NAME, support::Filter::load_within(&bytes, 1 << 30).err()),
        (Maplet::NAME, Maplet::load_within(&bytes, 1 << 30).err()),
        (Expiring::NAME, Expiring::load_within(&bytes, 1 << 30).err()),
        (Growable::NAME, Growable::load_within(&bytes, 1 << 30).err()),
    ] {
        assert_eq!(refusal.is_none(), name == F::NAME, "{} as {name}", F::NAME);
        refusal.iter().for_each(|error| assert_names(error, "Mismatch(Kind { snapshot: ", &[name, F::NAME]));
    }
}

#[test]
fn a_snapshot_of_one_type_is_not_loaded_as_another() {
    in_each_layout!(is_loaded_as_its_own_type_only);
}

fn load_or_view<F: Table + FromSnapshot<Hasher> + Viewed<Hasher = Hasher>>(bytes: &[u8]) -> Result<F, LoadError> {
    agreed(bytes, Hasher::default(), F::load_within(bytes, 1 << 30))
}

fn is_refused_if_damaged<F: Table + FromSnapshot<Hasher> + Viewed<Hasher = Hasher>>(
    new: impl Fn(usize) -> F,
    number: impl Fn(u64) -> u64,
) {
    let filter = small(new, number);
    let bytes = filter.saved();
    let genuine = format!("{:?}", SnapshotInfo::read(&bytes[..]).unwrap());
    let refused = |damaged: &[u8], how: &dyn Fn() -> String| {
        let loading = load_or_view::<F>(damaged).err().unwrap_or_else(|| panic!("{} of {filter:?}", how()));
        let verifying = SnapshotInfo::verify(damaged).unwrap_err();
        assert_eq!(format!("{verifying:?}"), format!("{loading:?}"), "{} of {filter:?}", how());
        match SnapshotInfo::read(damaged) {
            Ok(info) => assert_eq!(format!("{info:?}"), genuine, "{} of {filter:?}", how()),
            Err(error) => assert_eq!(format!("{error:?}"), format!("{loading:?}"), "{} of {filter:?}", how()),
        }
    };
    for bit in 0..8 * bytes.len() {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        refused(&changed, &|| format!("bit {bit}"));
        // Reverses up to four bytes from here on, and changes the first of them.
        let end = bytes.len().min(bit / 8 + 4);
        changed.copy_from_slice(&bytes);
        changed[bit / 8..end].reverse();
        changed[bit / 8..end][0] ^= bit as u8 % 8;
        if changed != bytes {
            refused(&changed, &|| format!("bytes {}..{end}", bit / 8));
        }
    }
}

/// Without loading, it is refused for the same reason. What is read from a header alone is no other than what it was.
#[test]
fn no_snapshot_of_which_a_bit_or_a_few_have_changed_is_loaded() {
    in_each_layout!(of_a_fixed_size: is_refused_if_damaged);
    is_refused_if_damaged(|_| kinds::growable(10, 0.03), |_| 0);
}

fn is_refused_if_cut_short<F: Table + FromSnapshot<Hasher> + Viewed<Hasher = Hasher>>(
    new: impl Fn(usize) -> F,
    number: impl Fn(u64) -> u64,
) {
    let bytes = small(new, number).saved();
    let all = bytes.len() as u64;
    let (schema, head) = (u64::from(bytes[19]), [0, 5, 36, 31][usize::from(bytes[10]).saturating_sub(3)]);
    for len in 0..all {
        let error = load_or_view::<F>(&bytes[..len as usize]).expect_err("it is cut short");
        let LoadError::Damaged(SnapshotDamage::Truncated { available, expected, .. }) = error else {
            panic!("{len} bytes: {error:?}")
        };
        assert_eq!(available, len);
        // The expected length is first that of the shortest snapshot. Once the length of the schema is known, it includes
        // the schema. From the header of the table on, it is the whole length.
        let least = 76 + if len >= 20 { schema } else { 0 };
        // In a longer head, the number that is cut short may end beyond that.
        let most = if head > 5 { least.max(len + 8) } else { least };
        let expectation = if len >= 56 + schema + head { all..=all } else { least.max(len + 1)..=most };
        assert!(expectation.contains(&expected), "{len} bytes, {expected} expected");
        assert!(error.to_string().contains(&format!("it has {len} bytes, and needs at least {expected};")), "{error}");
    }
}

#[test]
fn a_snapshot_that_is_cut_short_is_said_to_be() {
    in_each_layout!(of_a_fixed_size: is_refused_if_cut_short);
    is_refused_if_cut_short(|_| kinds::growable(10, 0.03), |_| 0);
}

#[test]
fn another_hasher_is_refused_and_one_with_another_key_too() {
    let filter = build(LAYOUTS[5], 100);
    let bytes = saved(&filter);
    let other = StableHashBuilder::with_key([1; 16]);
    assert!(matches!(Filter::load(&bytes[..], other, 1 << 20), Err(LoadError::Mismatch(SnapshotMismatch::Hasher))));
    let other = ConcurrentCuckooFilter::<u64, _>::load(&bytes[..], DefaultHashBuilder::new(), 1 << 20);
    assert!(matches!(other, Err(LoadError::Mismatch(SnapshotMismatch::Hasher))));

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
fn the_message_says_why_a_reader_failed() {
    struct Failing;
    impl io::Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(ErrorKind::PermissionDenied, "not yours"))
        }
    }
    let error = Filter::load(Failing, state(), 1 << 20).unwrap_err();
    assert!(matches!(&error, LoadError::Io(error) if error.kind() == ErrorKind::PermissionDenied));
    let text = error.to_string();
    assert!(text.contains("could not be read: not yours; ") && text.contains("rebuild the filter"), "{text}");
    assert!(error.source().is_none(), "{error:?}");
}
