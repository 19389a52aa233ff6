//! What deserializing without a limit asks of the allocator.

use std::hash::{BuildHasherDefault, DefaultHasher};

use super::*;

/// A hasher that is the same in every filter.
type Fixed = BuildHasherDefault<DefaultHasher>;

type Growable = GrowableCuckooFilter<u64, Fixed>;

/// An empty filter that was doubled so often, or nearly. The words are so few that no segment is larger than what is touched.
fn growable(rate: f64, level: usize) -> Growable {
    let builder = Growable::builder_with_hasher(Fixed::default()).capacity(0).false_positive_rate(rate);
    let filter = builder.max_capacity(1_000_000).build().unwrap();
    filter.reserve((filter.capacity() << level).min(20_000)).unwrap();
    filter
}

macro_rules! saved {
    ($filter:expr) => {{
        let mut bytes = Vec::new();
        $filter.save(&mut bytes).unwrap();
        bytes
    }};
}

#[cfg(feature = "serde")]
mod deserialized {
    use concurrent_cuckoo_filter::{CuckooMaplet, ExpiringCuckooFilter, Loader};
    use serde::Deserialize;
    use serde::de::DeserializeSeed;

    use super::*;

    type OneTable = ConcurrentCuckooFilter<u64, Fixed>;
    type Maplet = CuckooMaplet<u64, Fixed>;
    type Expiring = ExpiringCuckooFilter<u64, Fixed>;

    /// Places in the snapshot of a growable filter: the end of the header, then the fields on its sizes, then the
    /// section of its table.
    const HEADER: usize = 44;
    const SECTION: usize = HEADER + 19 + 4;

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
            let held = at_once.unwrap().stats().memory_usage;
            assert_eq!(one_by_one.unwrap().stats().memory_usage, held);
            let factor = if bytes.len() < LARGE { FACTOR } else { FACTOR_OF_LARGE };
            assert!(held <= factor * bytes.len(), "{} bytes have become {held}", bytes.len());
            assert!(peak_at_once <= held + bytes.len(), "{peak_at_once} for {held}");
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

    #[test]
    #[cfg_attr(target_arch = "s390x", ignore = "the figures are for cache lines of at most 128 bytes")]
    fn a_filter_takes_up_to_12_times_its_bytes_and_large_ones_2() {
        for rate in [0.9, 0.001, 1e-6] {
            for level in 0..8 {
                check!(Growable, saved!(growable(rate, level)));
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
    fn a_table_that_is_stated_and_not_there_is_not_allocated() {
        let claimed = (1u64 << 27).to_le_bytes();
        let mut bytes = saved!(growable(0.001, 0))[..SECTION + 25].to_vec();
        // It is at its largest size.
        bytes[HEADER + 1..HEADER + 3].copy_from_slice(&[14, 27]);
        bytes[HEADER + 3..HEADER + 11].copy_from_slice(&claimed);
        bytes[HEADER + 11..HEADER + 19].copy_from_slice(&claimed);
        bytes[SECTION..SECTION + 3].copy_from_slice(&[1, 5, 14]);
        bytes[SECTION + 3..SECTION + 11].copy_from_slice(&claimed);
        let bytes = resealed(bytes, &[HEADER - 8, HEADER - 4, SECTION - 4, SECTION + 11]);
        let [(_, at_once), (refused, one_by_one)] = peaks::<Growable>(&bytes);
        // The other format has no room for a message.
        let error = refused.unwrap_err();
        assert!(at_once < 2_000 && one_by_one < 2_000, "{at_once} and {one_by_one} bytes: {error}");
        assert!(error.contains("cut short"), "{error}");
    }
}
