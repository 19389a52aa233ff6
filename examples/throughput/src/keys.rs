//! The keys: real ones from a list, synthetic ones made of them, and absent ones that are never inserted.

use std::ops::Range;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::report::grouped;

/// `examples/data/README.md` says where it comes from. No key is twice in it, and none has an `@`.
const LIST: &[u8] = include_bytes!("../../data/disposable-email-domains.txt");
const LIST_NAME: &str = "examples/data/disposable-email-domains.txt";

/// Enough absent keys to measure a rate, and few enough to be quick.
const ABSENT_KEYS: Range<usize> = 100_000..2_000_000;

/// All keys of a run. No key occurs twice.
pub(crate) struct KeySet {
    /// One key a line.
    pub(crate) present: Vec<u8>,
    pub(crate) absent: Vec<u8>,
    /// What the report says of them.
    pub(crate) about: String,
}

impl KeySet {
    /// Takes the first `items` keys of the list. If they are fewer, adds synthetic ones.
    ///
    /// A synthetic key is an address at a real one, such as `user12345@mailinator.com`. It is about as long as real
    /// keys are, so hashing costs what it costs in practice. Absent keys are made in the same way. No number is used
    /// twice, so all keys differ.
    pub(crate) fn new(items: usize) -> Self {
        let mut real = lines(LIST);
        real.truncate(items);
        let synthetic = |number: usize| [format!("user{number}@").as_bytes(), real[number % real.len()]].concat();
        // In random order, and stored in that order. So a thread that goes through its keys reads memory in sequence,
        // and only the set makes it wait. That is realistic: a key has usually just been received.
        let mut order: Vec<usize> = (0..items).collect();
        order.shuffle(&mut SmallRng::seed_from_u64(1));
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        for number in order {
            match real.get(number) {
                Some(key) => present.extend_from_slice(key),
                None => present.extend(synthetic(number)),
            }
            present.push(b'\n');
        }
        for number in items..items + items.clamp(ABSENT_KEYS.start, ABSENT_KEYS.end) {
            absent.extend(synthetic(number));
            absent.push(b'\n');
        }

        let mut about = format!("{}: {} from {LIST_NAME}", grouped(items), grouped(real.len()));
        if items > real.len() {
            let sample = synthetic(real.len());
            let sample = String::from_utf8_lossy(&sample);
            about += &format!(", {} synthetic such as {sample}", grouped(items - real.len()));
        }
        about += &format!("; {:.1} bytes on average", (present.len() - items) as f64 / items as f64);
        Self { present, absent, about }
    }
}

/// The lines of a text.
pub(crate) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect()
}
