//! Inserts into an empty filter that grows to the number of keys, beside those into a fixed filter of the final size.

use crate::support::clock::own_time;
use crate::support::keys::key;
use crate::support::ours::{Fixed, Growable, Ours};
use crate::support::report::Spread;

/// With room for a thousand keys at first, as by default.
fn growable() -> Growable {
    crate::support::ours::growable().build().expect("a valid filter")
}

/// Nanoseconds an insert. A fixed filter's memory is touched for the first time while the clock runs, as a growable
/// one's is.
fn time(keys: u64, insert: impl Fn(u64)) -> f64 {
    let start = own_time();
    (0..keys).for_each(|number| insert(key(number)));
    (own_time() - start) as f64 / keys as f64
}

pub(crate) fn speed(keys: u64, rounds: usize) -> Vec<Vec<String>> {
    let (mut of_growable, mut of_fixed) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let filter = growable();
        of_growable.push(time(keys, |key| filter.insert(&key).expect("it grows")));
        let capacity = filter.capacity();
        drop(filter);
        let start = own_time();
        let filter = Fixed::of_keys(capacity);
        let built = (own_time() - start) as f64 / keys as f64;
        of_fixed.push(built + time(keys, |key| filter.insert(&key).expect("there is room")));
    }
    let ratio = Spread::of_ratios(&of_growable, &of_fixed).show();
    let [of_fixed, of_growable] = [of_fixed, of_growable].map(|times| format!("{:.1}", Spread::of(times).median));
    let head = ["", "fixed filter", "growable", "growable over fixed"].map(String::from).to_vec();
    vec![head, vec!["insert".to_owned(), of_fixed, of_growable, ratio]]
}

/// The longest inserts, in microseconds of processor time. The work of each insert is the same in each run, so of what it
/// took in several, the least counts: the rest is the machine's.
pub(crate) fn longest(keys: u64, runs: usize) -> Vec<Vec<String>> {
    let least = |build: &dyn Fn() -> Box<dyn Fn(u64)>| {
        let mut least = vec![u32::MAX; keys as usize];
        for _ in 0..runs {
            let insert = build();
            for (number, least) in (0..keys).zip(&mut least) {
                let key = key(number);
                let start = own_time();
                insert(key);
                *least = (*least).min((own_time() - start) as u32);
            }
        }
        least.sort_unstable_by(|one, other| other.cmp(one));
        [0, 1, 9, 99].map(|nth| format!("{:.1}", f64::from(least[nth]) / 1e3)).to_vec()
    };
    let of_growable = least(&|| {
        let filter = growable();
        Box::new(move |key| filter.insert(&key).expect("it grows"))
    });
    let largest = growable();
    largest.reserve(keys as usize).expect("there is memory");
    let capacity = largest.capacity();
    drop(largest);
    let of_fixed = least(&|| {
        let filter = Fixed::of_keys(capacity);
        Box::new(move |key| filter.insert(&key).expect("there is room"))
    });
    let head = ["", "the longest", "the second", "the tenth", "the hundredth"].map(String::from).to_vec();
    let rows = [("growable", of_growable), ("fixed filter", of_fixed)];
    let rows = rows.map(|(name, times)| [vec![name.to_owned()], times].concat());
    [vec![head], rows.to_vec()].concat()
}
