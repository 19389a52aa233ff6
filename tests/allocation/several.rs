//! What loads of filters of several tables ask of the allocator, and what deserializing without a limit asks of it.

use std::hash::{BuildHasherDefault, DefaultHasher};

use super::*;
use concurrent_cuckoo_filter::LoadError;

/// A hasher that is the same in every filter.
type Fixed = BuildHasherDefault<DefaultHasher>;

type Growable = GrowableCuckooFilter<u64, Fixed>;

fn growable(rate: f64, tables: usize) -> Growable {
    let builder = Growable::builder_with_hasher(Fixed::default()).capacity(0).false_positive_rate(rate);
    let filter = builder.build().unwrap();
    while filter.tables() < tables {
        filter.reserve(filter.capacity() + 1).unwrap();
    }
    filter
}

macro_rules! saved {
    ($filter:expr) => {{
        let mut bytes = Vec::new();
        $filter.save(&mut bytes).unwrap();
        bytes
    }};
}

#[test]
fn load_of_several_tables_allocates_no_more_than_the_limit() {
    /// Loads a filter, and checks the bytes and the number of its requests. The requests that `boxes` names cannot
    /// be refused.
    macro_rules! check {
        ($Filter:ident, $filter:expr, requests $count:expr, boxes $is_box:expr) => {
            let filter = $filter;
            let (bytes, needed) = (saved!(filter), filter.memory_usage());
            let load = |limit| $Filter::load(&bytes[..], Fixed::default(), limit);
            let (loaded, requests) = watch(|| load(needed));
            assert_eq!(loaded.unwrap().memory_usage(), needed);
            assert_eq!((requests.bytes + size_of::<$Filter>(), requests.count), (needed, $count), "{filter:?}");
            let (refused, requests) = watch(|| load(needed - 1));
            assert!(matches!(refused, Err(LoadError::MemoryLimit { .. })), "{refused:?}");
            assert_eq!(requests.count, 0, "it is refused before anything is allocated");
            for nth in (1..=$count).filter(|nth| !$is_box(*nth)) {
                let refused = refuse(nth, || load(needed));
                assert!(matches!(refused, Err(LoadError::OutOfMemory { .. })), "request {nth}: {refused:?}");
            }
        };
    }
    // For each table the words, stripes, shards, what saves need, and the box; then the gates.
    check!(Growable, growable(0.001, 1), requests 6, boxes |nth: usize| nth.is_multiple_of(5));
    check!(Growable, growable(0.001, 4), requests 21, boxes |nth: usize| nth.is_multiple_of(5));
    // First the list of places for later tables.
    check!(Growable, growable(0.001, 6), requests 32, boxes |nth: usize| nth > 1 && nth % 5 == 1);
}

#[cfg(feature = "serde")]
mod deserialized {
    use concurrent_cuckoo_filter::{ExpiringCuckooFilter, Loader};
    use serde::Deserialize;
    use serde::de::DeserializeSeed;

    use super::*;

    type OneTable = ConcurrentCuckooFilter<u64, Fixed>;
    type Maplet = ConcurrentCuckooMaplet<u64, Fixed>;
    type Expiring = ExpiringCuckooFilter<u64, Fixed>;

    /// Places in the snapshot of a growable filter: the end of the header, then the fields on its tables, then the
    /// first section.
    const HEADER: usize = 44;
    const SECTIONS: usize = HEADER + 18 + 4;

    /// How much larger a filter may be than its bytes, as the documentation of `Deserialize` says.
    const FACTOR: usize = 12;

    /// The same for this many bytes or more.
    const FACTOR_OF_LARGE: usize = 2;
    const LARGE: usize = 128 << 10;

    /// How many times as much memory as the bytes is in use besides, if they arrive one by one.
    const COLLECTED: usize = 3;

    /// Deserializes the bytes, at once and one by one. Returns the filter, and the most memory in use.
    fn peaks<F: for<'de> Deserialize<'de>>(bytes: &[u8]) -> [(Result<F, String>, usize); 2] {
        let (postcard, json) = (postcard::to_stdvec(bytes).unwrap(), serde_json::to_string(bytes).unwrap());
        [
            peak_of(|| postcard::from_bytes(&postcard).map_err(|error| error.to_string())),
            peak_of(|| serde_json::from_str(&json).map_err(|error| error.to_string())),
        ]
    }

    macro_rules! check {
        ($Filter:ident, $bytes:expr) => {
            let bytes = $bytes;
            let [(at_once, peak_at_once), (one_by_one, peak_one_by_one)] = peaks::<$Filter>(&bytes);
            let held = at_once.unwrap().memory_usage();
            assert_eq!(one_by_one.unwrap().memory_usage(), held);
            let factor = if bytes.len() < LARGE { FACTOR } else { FACTOR_OF_LARGE };
            assert!(held <= factor * bytes.len(), "{} bytes have become {held}", bytes.len());
            assert!(peak_at_once <= held, "{peak_at_once} for {held}");
            assert!(peak_one_by_one <= held + COLLECTED * bytes.len(), "{peak_one_by_one} for {held}");
            // With a limit, no memory is in use besides the filter.
            let json = serde_json::to_string(&bytes).unwrap();
            let loader = Loader::<$Filter, _>::new(Fixed::default(), held);
            let (loaded, peak) = peak_of(|| loader.deserialize(&mut serde_json::Deserializer::from_str(&json)));
            assert!(loaded.is_ok() && peak <= held, "{peak} for {held}");
        };
    }

    /// The snapshot, with the checksums at these places corrected.
    fn resealed(mut bytes: Vec<u8>, seals: &[usize]) -> Vec<u8> {
        let mut sum = crc32fast::Hasher::new();
        let mut begin = 0;
        for &seal in seals {
            sum.update(&bytes[begin..seal]);
            begin = seal + 4;
            bytes[seal..begin].copy_from_slice(&sum.clone().finalize().to_le_bytes());
        }
        bytes
    }

    /// A snapshot of a growable filter whose first table has two buckets, fewer than any builder makes. So the
    /// tables are as small as possible.
    fn tiny_tables(rate: f64, tables: usize) -> Vec<u8> {
        let genuine = saved!(growable(rate, tables));
        let mut bytes = genuine[..SECTIONS].to_vec();
        bytes[HEADER + 2..HEADER + 10].copy_from_slice(&2u64.to_le_bytes());
        let mut seals = vec![HEADER - 8, HEADER - 4, SECTIONS - 4];
        let mut section = SECTIONS;
        for number in (0..tables).rev() {
            seals.push(bytes.len() + 11);
            bytes.extend(&genuine[section..section + 3]);
            bytes.extend((2u64 << number).to_le_bytes());
            bytes.extend(vec![0; 4 + (16 << number) + 8]);
            let buckets = u64::from_le_bytes(genuine[section + 3..section + 11].try_into().unwrap());
            section += 23 + 8 * buckets as usize;
        }
        seals.push(bytes.len());
        bytes.extend([0; 4]);
        resealed(bytes, &seals)
    }

    #[test]
    #[cfg_attr(target_arch = "s390x", ignore = "the figures are for cache lines of at most 128 bytes")]
    fn a_filter_takes_up_to_12_times_its_bytes_and_large_ones_2() {
        for rate in [0.9, 0.001, 1e-7] {
            for tables in 1..12 {
                check!(Growable, tiny_tables(rate, tables));
                check!(Growable, saved!(growable(rate, tables)));
            }
        }
        for capacity in [1, 2, 10, 30, 100, 1000, 10_000, 100_000] {
            let builder = OneTable::builder_with_hasher(Fixed::default()).capacity(capacity);
            check!(OneTable, saved!(builder.build().unwrap()));
            let builder = Maplet::builder_with_hasher(Fixed::default()).capacity(capacity);
            check!(Maplet, saved!(builder.value_bits(4).build().unwrap()));
            let builder = Expiring::builder_with_hasher(Fixed::default()).capacity(capacity);
            check!(Expiring, saved!(builder.lifetime_in_ticks(15).build().unwrap()));
        }
    }

    /// Each header is correct, up to the header of a table of 1 GiB, of which only ten bytes are there.
    #[test]
    fn tables_that_are_stated_and_not_there_are_not_allocated() {
        let claimed = (1u64 << 27).to_le_bytes();
        let claim = |snapshot: &[u8]| {
            let mut bytes = snapshot[..SECTIONS + 25].to_vec();
            bytes[SECTIONS + 3..SECTIONS + 11].copy_from_slice(&claimed);
            bytes
        };
        let seals = [HEADER - 8, HEADER - 4, SECTIONS - 4, SECTIONS + 11];
        let mut bytes = claim(&saved!(growable(0.001, 1)));
        bytes[HEADER + 2..HEADER + 10].copy_from_slice(&claimed);
        let growable = resealed(bytes, &seals);

        let of_growable = peaks::<Growable>(&growable).map(|(refused, peak)| (refused.unwrap_err(), peak));
        for (error, peak) in of_growable {
            assert!(peak < 2_000, "{peak} bytes: {error}");
        }
        // The other format has no room for a message.
        let [_, (refused, _)] = peaks::<Growable>(&growable);
        assert!(refused.unwrap_err().contains("cut short"));
    }
}
