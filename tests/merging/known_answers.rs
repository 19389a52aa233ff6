//! The same changes in the same order, from the same start, give the same digest on every machine, and in every
//! version that writes this version of the snapshot format.
//!
//! If one of these tests fails, nodes of different versions would take each other for damaged. A change of an
//! answer needs a new version of the format (`src/snapshot/parts.rs`) and an entry in the changelog.

use std::iter;

use concurrent_cuckoo_filter::{
    ConcurrentCuckooFilter, CuckooMaplet, Encoding, ExpiringCuckooFilter, GrowableCuckooFilter, Hashed,
    StableHashBuilder, Tick, WhenFull,
};

use crate::support::{GOLDEN, LAYOUTS, MAPLET_LAYOUTS, scattered};

fn hasher() -> StableHashBuilder {
    StableHashBuilder::with_key(*b"known answers #1")
}

/// This many hashes of keys. The answers depend on them.
fn hashes(seed: u64, count: usize) -> impl Iterator<Item = u64> {
    let numbers = iter::successors(Some(seed), |number| Some(number.wrapping_add(GOLDEN)));
    numbers.take(count).map(|number| scattered(number).0)
}

fn filter(encoding: Encoding, rate: f64) -> ConcurrentCuckooFilter<str, StableHashBuilder> {
    let builder = ConcurrentCuckooFilter::<str>::builder().capacity(700).encoding(encoding).false_positive_rate(rate);
    builder.hasher(hasher()).build().unwrap()
}

#[test]
fn of_filters() {
    let digests = LAYOUTS.map(|(encoding, rate, ..)| {
        let filter = filter(encoding, rate);
        hashes(1, 700).for_each(|hash| filter.by_hash().insert(Hashed(hash)).unwrap());
        hashes(1, 90).for_each(|hash| assert!(filter.by_hash().remove(Hashed(hash))));
        hashes(2, 80).for_each(|hash| assert!(filter.by_hash().insert_if_absent(Hashed(hash)).is_ok()));
        filter.digest().unwrap()
    });
    assert_eq!(digests, FILTERS, "{digests:#018x?}");
}

/// Text is also hashed in the same way everywhere.
#[test]
fn of_keys() {
    let filter = filter(Encoding::SemiSorted, 0.001);
    assert_eq!(filter.digest().unwrap(), EMPTY, "{:#018x?}", filter.digest());
    for key in ["", "token-17", "žluťoučký kůň", "token-17"] {
        filter.insert(key).unwrap();
    }
    assert_eq!(filter.digest().unwrap(), KEYS, "{:#018x?}", filter.digest());
}

#[test]
fn of_maplets() {
    let digests = MAPLET_LAYOUTS.map(|(value_bits, rate, ..)| {
        let builder = CuckooMaplet::<str>::builder().capacity(700).value_bits(value_bits);
        let maplet = builder.false_positive_rate(rate).hasher(hasher()).build().unwrap();
        let value = |hash| (hash % (1 << value_bits)) as u16;
        hashes(1, 650).for_each(|hash| maplet.by_hash().insert(Hashed(hash), value(hash)).unwrap());
        hashes(1, 90).for_each(|hash| assert!(maplet.by_hash().remove(Hashed(hash), value(hash))));
        maplet.digest().unwrap()
    });
    assert_eq!(digests, MAPLETS, "{digests:#018x?}");
}

#[test]
fn of_entries_that_expire() {
    let digests = [1, 3, 14, 62, 254, 65_534].map(|longest| {
        // (So it has a layout that keeps to the rate with every slot taken.)
        let builder = ExpiringCuckooFilter::<str>::builder().capacity(900).when_full(WhenFull::EvictSoonest);
        let filter = builder.lifetime_in_ticks(longest).hasher(hasher()).build().unwrap();
        let mut now = 29_700_000; // minutes since 1970, in 2026
        for seed in 0..6 {
            filter.advance_to(Tick::new(now));
            let end = |hash: u64| now + 1 + hash % longest;
            hashes(seed, 150)
                .for_each(|hash| _ = filter.by_hash().insert_until(Hashed(hash), Tick::new(end(hash))).unwrap());
            hashes(seed, 10)
                .for_each(|hash| assert!(filter.by_hash().remove_expiring_at(Hashed(hash), Tick::new(end(hash)))));
            now += longest.div_ceil(4);
        }
        filter.digest().unwrap()
    });
    assert_eq!(digests, EXPIRING, "{digests:#018x?}");
}

#[test]
fn of_a_filter_that_grows() {
    let builder = GrowableCuckooFilter::<str>::builder().capacity(100);
    let growable = builder.hasher(hasher()).build().unwrap();
    hashes(1, 2000).for_each(|hash| growable.by_hash().insert(Hashed(hash)).unwrap());
    hashes(1, 300).for_each(|hash| assert!(growable.by_hash().remove(Hashed(hash))));
    assert_eq!(growable.digest().unwrap(), SEVERAL);
}

const FILTERS: [u64; 13] = [
    0x2973_4fec_4742_ac2e,
    0x2451_4050_48e0_b1c1,
    0x3bee_4e14_7ce5_6915,
    0xb09b_e288_9caf_820d,
    0xd5d8_4a12_8215_2898,
    0xc115_5545_3224_3c8f,
    0xad2c_1214_6a2c_1a15,
    0x9e9e_4058_6b3b_4689,
    0x1cf7_97c9_ef4d_aa1a,
    0xa847_aef8_d6f3_b5ea,
    0x61e7_d5a7_2f67_9100,
    0xab27_b4ff_43f2_98c2,
    0x4f70_a7ce_0266_55b5,
];
const EMPTY: u64 = 0xd24a_bb1c_4911_fef2;
const KEYS: u64 = 0xcf80_f8ab_4795_045b;
const MAPLETS: [u64; 10] = [
    0x8813_bbce_4eb4_1f54,
    0xc677_eec2_f8a0_6869,
    0x6877_f579_2dea_8fc8,
    0x7e78_ea15_5779_94bc,
    0x952a_9ee8_de46_213b,
    0xb90f_eb41_588b_893f,
    0x1e1d_2c04_293a_e1b1,
    0xaea0_060d_4b50_a6d3,
    0x69a5_5583_b50e_a1d1,
    0x3ee9_863b_5a2c_7bc6,
];
const EXPIRING: [u64; 6] = [
    0x241a_8cb1_377a_d1f9,
    0x4047_b0dd_e2a3_0bc3,
    0x2747_1051_d59a_6c25,
    0x59c0_c4d8_7b1a_2dc7,
    0xe25c_4278_c0ae_97d6,
    0x924c_ebab_bc9c_48af,
];
const SEVERAL: u64 = 0x6479_bb92_f7ff_0c24;
