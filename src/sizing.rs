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
//! - **The search's budget** (`path.rs`), which in a large table ends some search before it finds the path that there
//!   is, from 88 % (b = 2) to 99 % (b = 8) on. [`TARGET_LOAD`] stays below that.
//!
//! The result: the probability that fewer distinct random keys than the capacity fill the table is below [`FAILURE`].
//! That is much too seldom to be seen, so it is computed, measured where it is not so small, or told from what is:
//!
//! - **Up to [`BUDGET`](crate::path::BUDGET) buckets** a search finds every path, so a table refuses an item only if the
//!   items do not fit. A test bounds the probability of that for every table of up to 128 buckets and some larger ones:
//!   it is at most 9e-10 (`small_tables_overflow_with_negligible_probability`). It takes all pairs of buckets to be
//!   equally likely; fingerprints of eight bits favour some, which adds a tenth at most. Where the bound is one in a
//!   hundred, half as many real tables or more refuse an item: `small_tables_refuse_items_as_often_as_computed`.
//! - **In larger tables**, filled to the capacity, no more than three searches in a million look at more than 512
//!   buckets, in any layout, and twice as many buckets about square that share; so the budget ends less than one in
//!   1e20 (`path::tests::how_far_searches_go`). That is an extrapolation; for tables a little fuller it can be followed
//!   further. As to the threshold, the capacity lies 14 or more standard deviations below the median of the loads at
//!   which tables refused an item.
//!
//! Of 36 million tables of 4 to 1,048,576 buckets, none refused an item below its capacity. In some of the sizes, the
//! capacity, and then the load at the first refused insert: the lowest, that of one table in a thousand (except for the
//! largest), and the median, all in percent (`load_at_the_first_refused_insert`):
//!
//! | slots × bits | 16 buckets | 128 | 1,024 | 65,536 |
//! |---|---|---|---|---|
//! | plain 8 × 8 | 79.7: 91.4, 96.1, 100.0 | 93.2: 98.1, 98.8, 99.8 | 95.7: 99.5, 99.5, 99.8 | 96.8: 99.5, 99.5 |
//! | plain 7 × 9 | 66.1: 89.3, 94.6, 100.0 | 92.3: 97.7, 98.3, 99.7 | 95.3: 99.2, 99.3, 99.7 | 96.8: 99.3, 99.4 |
//! | plain 6 × 10 | 52.1: 88.5, 92.7, 100.0 | 91.5: 96.9, 97.8, 99.5 | 95.1: 98.8, 99.0, 99.4 | 96.8: 98.9, 99.0 |
//! | semi-sorted 6 × 12 | 52.1: 85.4, 92.7, 100.0 | 91.5: 96.7, 97.8, 99.5 | 95.1: 98.8, 99.0, 99.4 | 96.8: 98.9, 99.0 |
//! | plain 5 × 12 | 37.5: 83.8, 90.0, 100.0 | 89.8: 95.6, 96.7, 99.1 | 94.5: 98.1, 98.2, 99.0 | 96.7: 98.3, 98.5 |
//! | semi-sorted 5 × 14 | 37.5: 81.2, 90.0, 100.0 | 89.8: 95.3, 96.7, 99.1 | 94.5: 98.0, 98.2, 99.0 | 96.7: 98.3, 98.5 |
//! | plain 4 × 16 | 23.4: 70.3, 85.9, 100.0 | 85.2: 94.0, 94.9, 98.2 | 91.9: 96.8, 97.0, 98.0 | 95.0: 97.2, 97.5 |
//! | semi-sorted 4 × 17 | 23.4: 67.2, 85.9, 100.0 | 85.2: 92.2, 94.7, 98.2 | 91.9: 96.9, 97.0, 98.1 | 95.0: 97.2, 97.5 |
//! | plain 3 × 21 | 12.5: 52.1, 77.1, 97.9 | 51.3: 87.5, 90.9, 96.1 | 85.7: 94.0, 94.3, 95.9 | 91.2: 94.7, 95.1 |
//! | semi-sorted 3 × 22 | 12.5: 52.1, 77.1, 97.9 | 51.3: 87.5, 90.6, 96.1 | 85.7: 93.6, 94.2, 95.9 | 91.2: 94.8, 95.1 |
//! | plain 2 × 32 | 12.5: 21.9, 56.2, 93.8 | 10.6: 71.9, 79.7, 90.2 | 37.9: 85.3, 86.5, 89.8 | 81.6: 88.2, 88.7 |

use crate::layout::Shape;

/// The failure probability that the sizing leaves: how likely a table refuses one of as many distinct random keys as
/// its capacity.
const FAILURE: f64 = 1e-9;

/// The share of the slots of a large table that its capacity may take, for 0 to 8 slots a bucket.
///
/// 1 to 5 % below the lowest load at which a table was seen to refuse an insert.
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
pub(crate) const LARGEST: usize = isize::MAX as usize / size_of::<u64>() / 2 * 2;

/// The largest capacity whose table fits in the address space.
pub(crate) fn largest_capacity(shape: Shape) -> usize {
    capacity_of(shape, LARGEST)
}

#[cfg(test)]
mod tests {
    use core::f64::consts::LN_2;
    use std::thread;

    use super::*;
    use crate::any_table;
    use crate::layout::SHAPES;
    use crate::memory::Pages;
    use crate::path::BUDGET;

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

    /// How likely it is, at most, that so many random items do not fit: a sum over all sets of buckets.
    ///
    /// Items do not fit where more of them have both ends in some set of buckets than the set has slots. Leave out each
    /// bucket that `b` of these items or fewer lead to, and then add each that more than `b` lead to from within: the
    /// set remains overfull. So it is enough to add up how likely a set is overfull *and* more than `b` of its items lead
    /// to each bucket inside, and no more than `b` from it to any outside. (Without the last two there are so many sets
    /// that the sum says nothing of tables of more than 256 buckets.) Given how many items are inside, how many lead to
    /// each bucket is negatively associated, since the more lead to one, the fewer are left for others; so the product
    /// of the buckets' probabilities is a bound (Joag-Dev and Proschan, *Negative Association of Random Variables*,
    /// 1983).
    fn overflow_probability(slots: u32, buckets: usize, items: usize) -> f64 {
        let (slots, half) = (slots as usize, buckets / 2);
        if items > slots * buckets {
            return 1.0;
        }
        let ln_factorial: Vec<f64> = std::iter::once(0.0)
            .chain((1..=items.max(half)).scan(0.0, |sum, i| {
                *sum += (i as f64).ln();
                Some(*sum)
            }))
            .collect();
        let ln_choose = |n: usize, k: usize| ln_factorial[n] - ln_factorial[k] - ln_factorial[n - k];
        // That a bucket has room for all that lead to it, of `n` items that each do with probability `p`.
        let fits = |n: usize, p: f64| -> f64 {
            if p >= 1.0 {
                return f64::from(n <= slots);
            }
            let mut term = (n as f64 * f64::ln_1p(-p)).exp();
            let mut sum = term;
            for k in 0..slots.min(n) {
                term *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
                sum += term;
            }
            sum
        };
        // More than all the terms that are left out below.
        let mut sum = 1e-15;
        for (even, odd) in (1..=half).flat_map(|even| (even..=half).map(move |odd| (even, odd))) {
            let room = slots * (even + odd);
            let ln_sets = ln_choose(half, even) + ln_choose(half, odd) + if even == odd { 0.0 } else { LN_2 };
            let square = (half * half) as f64;
            let inside = (even * odd) as f64 / square;
            let into = |ends: usize| ends as f64 / square / (1.0 - inside);
            for k in room + 1..=items {
                let ln_overfull =
                    ln_sets + ln_choose(items, k) + k as f64 * inside.ln() + (items - k) as f64 * f64::ln_1p(-inside);
                // From here on it halves with each item, at least.
                if ln_overfull < -50.0 {
                    break;
                }
                let more = |ends: usize| ends as f64 * f64::ln_1p(-fits(k, 1.0 / ends as f64));
                let fewer = |ends: usize, others: usize| others as f64 * fits(items - k, into(ends)).ln();
                let term = ln_overfull + more(even) + more(odd) + fewer(even, half - odd) + fewer(odd, half - even);
                sum += term.exp();
            }
        }
        sum
    }

    #[test]
    #[cfg_attr(miri, ignore = "arithmetic alone, and much of it")]
    fn small_tables_overflow_with_negligible_probability() {
        for slots in 2..=8 {
            let shape = Shape::plain(slots, 8);
            for half in (2..=64).chain([128, 256, 512, BUDGET / 2]) {
                let items = capacity_of(shape, 2 * half);
                let failure = overflow_probability(slots, 2 * half, items);
                assert!(failure <= FAILURE, "{slots} slots, {} buckets, {items} items: {failure:e}", 2 * half);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "statistics need thousands of tables")]
    fn small_tables_refuse_items_as_often_as_computed() {
        const TABLES: usize = 20_000;
        for (shape, buckets) in [(Shape::plain(8, 8), 12), (Shape::semi_sorted(5, 14), 16), (Shape::plain(2, 32), 16)] {
            let probability = |items| overflow_probability(shape.slots, buckets, items);
            let items = (1..).find(|&items| probability(items) > 0.01).expect("too many items at some time");
            let refused = held_before_refusal(shape, buckets, TABLES).partition_point(|&held| held < items) as f64;
            let bound = probability(items) * TABLES as f64;
            assert!(
                refused < bound + 5.0 * bound.sqrt(),
                "{shape:?}: {refused} refused one of {items} items, not {bound}"
            );
            assert!(
                refused > bound / 2.0,
                "{shape:?}: {refused} refused one of {items} items, {bound} is too cautious"
            );
        }
    }

    /// How many random items a table takes before it refuses one; of so many tables, in order.
    fn held_before_refusal(shape: Shape, buckets: usize, tables: usize) -> Vec<usize> {
        let mut seed = (shape.slots as usize * buckets) as u64;
        let mut random = move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let x = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            x ^ (x >> 31)
        };
        let mut held: Vec<usize> = (0..tables)
            .map(|_| {
                let table = any_table::new(Pages::Usual, shape, buckets, 0).expect("a small table");
                (0..).find(|_| table.insert(random()).is_err()).expect("it fills")
            })
            .collect();
        held.sort_unstable();
        held
    }

    /// The load at the first refused insert, over tables of all sizes: what [`TARGET_LOAD`] and [`MARGIN`] were chosen
    /// from.
    ///
    /// As many tables as `refused` tells did not take as many items as their capacity. If none, the probability of that
    /// is below `below` with a confidence of 95 % (the "rule of three"), and below `computed` by computation. Where one
    /// table in a hundred had refused an item, the last columns tell how many had, and what was computed for that.
    ///
    /// `CCF_SIZING_ITEMS` is how many items go into the tables of a row, 20 million by default.
    #[test]
    #[ignore = "a measurement, not a test; run it in release mode with --nocapture"]
    fn load_at_the_first_refused_insert() {
        const SIZES: [usize; 15] = [4, 6, 8, 12, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 65_536, 1 << 20];
        let items = std::env::var("CCF_SIZING_ITEMS").map_or(20_000_000, |items| items.parse().expect("a number"));
        println!(
            "layout              buckets  tables refused  below computed | capacity |  lowest    0.1 %      1 %     10 % \
             \x20 median     90 %  highest | deviation | refused computed"
        );
        let row = |shape: Shape, buckets: usize| {
            let slots = buckets * shape.slots as usize;
            let tables = (items / slots).clamp(10, 1_000_000);
            let held = held_before_refusal(shape, buckets, tables);
            let capacity = capacity_of(shape, buckets);
            let refused = |items| held.partition_point(|&held| held < items);
            let share = |items: f64| format!("{:6.2} %", items / slots as f64 * 100.0);
            let quantile = |part: f64| held[((tables - 1) as f64 * part) as usize];
            let mean = held.iter().sum::<usize>() as f64 / tables as f64;
            let variance = held.iter().map(|&held| (held as f64 - mean).powi(2)).sum::<f64>() / tables as f64;
            let computed = |items, largest| match buckets <= largest {
                true => format!("{:7.1e}", overflow_probability(shape.slots, buckets, items)),
                false => "      -".to_owned(),
            };
            format!(
                "{:10} {} by {:2} {buckets:9} {tables:7} {:7} {:6.0e}  {} | {} | {} |  {} | {:7.1e}  {}",
                format!("{:?}", shape.encoding),
                shape.slots,
                shape.fingerprint_bits,
                refused(capacity),
                3.0 / tables as f64,
                computed(capacity, BUDGET),
                share(capacity as f64),
                [0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0].map(|part| share(quantile(part) as f64)).join(" "),
                share(variance.sqrt()),
                refused(quantile(0.01) + 1) as f64 / tables as f64,
                computed(quantile(0.01) + 1, 256),
            )
        };
        thread::scope(|scope| {
            let row = &row;
            let layouts = SHAPES.map(|shape| scope.spawn(move || SIZES.map(|buckets| row(shape, buckets)).join("\n")));
            layouts.into_iter().for_each(|rows| println!("{}", rows.join().expect("no panic")));
        });
    }
}
