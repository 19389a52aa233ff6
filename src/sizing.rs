//! Pure: how many buckets a number of items needs.
//!
//! A table is full, for one item, when no path leads from its two buckets to a free slot. Three things bring that about
//! before all slots are taken:
//!
//! - **The threshold.** Think of buckets as nodes and of items as edges: all fit if and only if no `j` buckets have
//!   more than `j·b` items with both ends among them. For random items that holds up to a sharp threshold of the load
//!   (95.9 % for b = 3, 98.0, 98.97 and 99.4 % for b = 4, 5 and 6), but in a small table chance makes it fall short.
//!   [`MARGIN`] square roots of the number of slots are left free for that.
//! - **One pair.** In a small table of small buckets the most likely of these failures by far is that `2b + 1` items
//!   share one pair of buckets: see [`pair_limit`].
//! - **The search's budget** (`path.rs`), which in a large table ends a search at about 98 % although a path exists.
//!   [`TARGET_LOAD`] stays below that.
//!
//! The result: the probability that fewer distinct random keys than the capacity fill the table is below [`FAILURE`].
//! For tables of up to 128 buckets a test adds up the probabilities of all possible failures; for larger ones the loads
//! at which tables were seen to fill up keep a wide distance (`load_at_the_first_refused_insert`, below).

use crate::layout::Shape;

/// The failure probability that the sizing leaves: how likely a table refuses one of as many distinct random keys as
/// its capacity.
const FAILURE: f64 = 1e-9;

/// The share of the slots of a large table that its capacity may take, for 0 to 8 slots a bucket.
///
/// 1 to 4 % below the lowest load at which a table was seen to refuse an insert.
const TARGET_LOAD: [f64; 9] = [0.0, 0.0, 0.83, 0.92, 0.955, 0.97, 0.97, 0.97, 0.97];

/// How many square roots of the number of slots the capacity of a small table leaves free.
const MARGIN: [f64; 9] = [0.0, 0.0, 5.0, 3.5, 2.3, 1.8, 1.5, 1.4, 1.2];

/// How many items a table of so many buckets is made for. The count is 1 or even, as [`buckets_for`] makes it.
pub(crate) fn capacity_of(shape: Shape, buckets: usize) -> usize {
    let bucket = shape.slots as usize;
    if buckets <= 2 {
        // All items have the same buckets: every slot can be used.
        return buckets * bucket;
    }
    let slots = buckets as f64 * bucket as f64;
    let by_load = TARGET_LOAD[bucket] * slots - MARGIN[bucket] * slots.sqrt();
    // Two buckets' worth of items always fit, even if all share one pair.
    (by_load.min(pair_limit(bucket, buckets)) as usize).max(2 * bucket)
}

/// How many items a table can take until it is as likely as half of [`FAILURE`] that some pair of buckets gets more
/// than it can hold.
///
/// With `p = (m/2)²` pairs, `n` items and `k = 2b + 1` that is at most `p · C(n, k) / pᵏ < p · nᵏ / (k! · pᵏ)`.
fn pair_limit(bucket: usize, buckets: usize) -> f64 {
    let pairs = (buckets as f64 / 2.0).powi(2);
    let k = 2 * bucket + 1;
    let factorial = (1..=k).map(|i| i as f64).product::<f64>();
    pairs * (FAILURE / 2.0 * factorial / pairs).powf(1.0 / k as f64)
}

/// The smallest table made for `capacity` items.
///
/// Its number of buckets is 1 or even, for then an item has either one bucket because there is no other, or two that
/// differ (`hash.rs`).
pub(crate) fn buckets_for(shape: Shape, capacity: usize) -> usize {
    if capacity <= capacity_of(shape, 1) {
        return 1;
    }
    // By bisection: `capacity_of` grows with the number of buckets, which is `2 * middle`.
    let (mut few, mut enough) = (1, LARGEST / 2);
    while few < enough {
        let middle = few + (enough - few) / 2;
        if capacity_of(shape, 2 * middle) >= capacity {
            enough = middle;
        } else {
            few = middle + 1;
        }
    }
    2 * enough
}

/// The most buckets that fit in the address space; even.
const LARGEST: usize = isize::MAX as usize / size_of::<u64>() / 2 * 2;

/// The largest capacity whose table fits in the address space.
pub(crate) fn largest_capacity(shape: Shape) -> usize {
    capacity_of(shape, LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::any_table;
    use crate::layout::SHAPES;

    #[test]
    fn the_smallest_table_that_is_large_enough_is_chosen() {
        for shape in SHAPES {
            for capacity in (0..2000).chain([10_000, 123_457, 10_000_000, usize::MAX >> 24]) {
                let buckets = buckets_for(shape, capacity);
                assert!(buckets == 1 || buckets.is_multiple_of(2), "{shape:?}, {capacity}: {buckets} buckets");
                assert!(capacity_of(shape, buckets) >= capacity, "{shape:?}, {capacity}: {buckets} buckets");
                if buckets > 2 {
                    assert!(capacity_of(shape, buckets - 2) < capacity, "{shape:?}, {capacity}: {buckets} buckets");
                }
            }
            assert!(buckets_for(shape, largest_capacity(shape)) <= LARGEST);
        }
    }

    #[test]
    fn a_large_table_takes_no_more_than_the_target_load_asks_for() {
        let default = Shape::semi_sorted(5, 14);
        let bits_per_item = |items| buckets_for(default, items) as f64 * 64.0 / items as f64;
        assert!(bits_per_item(1_000_000) < 13.23, "{}", bits_per_item(1_000_000));
        assert!(bits_per_item(10_000) < 13.5, "{}", bits_per_item(10_000));
    }

    /// Adds up, over all sets of buckets, the probability that more items have both ends in the set than fit (a bound
    /// on their union).
    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn small_tables_overflow_with_negligible_probability() {
        let ln_factorial: Vec<f64> = std::iter::once(0.0)
            .chain((1..2000).scan(0.0, |sum, i| {
                *sum += f64::from(i).ln();
                Some(*sum)
            }))
            .collect();
        let ln_choose = |n: usize, k: usize| ln_factorial[n] - ln_factorial[k] - ln_factorial[n - k];
        let tail = |n: usize, p: f64, above: usize| -> f64 {
            let term = |k: usize| (ln_choose(n, k) + k as f64 * p.ln() + (n - k) as f64 * f64::ln_1p(-p)).exp();
            (above + 1..=n).map(term).sum()
        };
        for slots in 2..=8 {
            let shape = Shape::plain(slots, 8);
            for half in [2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64] {
                let items = capacity_of(shape, 2 * half);
                let mut failure = 0.0;
                for (even, odd) in (1..=half).flat_map(|even| (1..=half).map(move |odd| (even, odd))) {
                    let room = slots as usize * (even + odd);
                    if room < items {
                        let inside = (even * odd) as f64 / (half * half) as f64;
                        let sets = (ln_choose(half, even) + ln_choose(half, odd)).exp();
                        failure += sets * tail(items, inside, room);
                    }
                }
                assert!(failure <= FAILURE, "{slots} slots, {} buckets, {items} items: {failure:e}", 2 * half);
            }
        }
    }

    /// The load at the first refused insert, over tables of all sizes: what `target_load` and the margin were chosen
    /// from.
    #[test]
    #[ignore = "a measurement, not a test; run it in release mode with --nocapture"]
    fn load_at_the_first_refused_insert() {
        let mut seed = 1u64;
        let mut random = move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        };
        println!("encoding slots bits | buckets  tables |  lowest    0.1 %     mean | capacity");
        for shape in SHAPES {
            for buckets in [4, 6, 8, 12, 16, 32, 64, 128, 256, 1024, 4096, 65_536, 1 << 20] {
                let tables = (3_000_000 / (buckets * shape.slots as usize)).clamp(2, 20_000);
                let slots = buckets * shape.slots as usize;
                let mut held: Vec<usize> = (0..tables)
                    .map(|_| {
                        let table = any_table::new(shape, buckets, 0).expect("a small table");
                        (0..).find(|_| table.insert(random()).is_err()).expect("it fills")
                    })
                    .collect();
                held.sort_unstable();
                let share = |items: usize| items as f64 / slots as f64 * 100.0;
                println!(
                    "{:?} {} {} | {buckets:7} {tables:7} | {:6.2} % {:6.2} % {:6.2} % | {:6.2} %",
                    shape.encoding,
                    shape.slots,
                    shape.fingerprint_bits,
                    share(held[0]),
                    share(held[tables / 1000]),
                    share(held.iter().sum::<usize>() / tables),
                    share(capacity_of(shape, buckets)),
                );
            }
        }
    }
}
