//! The keys: real ones from a list, synthetic ones made of them, and absent ones that are never inserted.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::report::grouped;

/// `examples/data/README.md` says where it comes from.
const BUNDLED: &[u8] = include_bytes!("../../data/disposable-email-domains.txt");
const BUNDLED_NAME: &str = "examples/data/disposable-email-domains.txt";

const DEFAULT_ITEMS: usize = 1_000_000;

/// A synthetic key takes at most so many bytes of a real one. Otherwise a file without line ends could use up all
/// memory.
const LONGEST_BASE: usize = 64;

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
    /// Takes the first `items` keys of the file, or of standard input for `-`, or of the list that comes with the
    /// example. If they are fewer, adds synthetic ones.
    ///
    /// A synthetic key is an address at a real one, such as `user12345@mailinator.com`. It is about as long as real
    /// keys are, so hashing costs what it costs in practice. Absent keys are made in the same way. No number is used
    /// twice, and no real key begins like a synthetic one, so all keys differ.
    pub(crate) fn make(path: Option<&Path>, items: Option<usize>) -> Result<Self, String> {
        let (name, text) = read(path)?;
        let mut seen = HashSet::new();
        let mut real: Vec<&[u8]> = lines(&text).into_iter().filter(|key| seen.insert(*key)).collect();
        if real.is_empty() {
            return Err(format!("{name} holds no key; give it one key a line"));
        }
        let items = items.unwrap_or(real.len().max(DEFAULT_ITEMS));
        real.truncate(items);

        let mut prefix = "user".to_owned();
        while real.iter().any(|key| key.starts_with(prefix.as_bytes())) {
            prefix.push('-');
        }
        let synthetic = |number: usize| {
            let base = real[number % real.len()];
            [format!("{prefix}{number}@").as_bytes(), &base[..base.len().min(LONGEST_BASE)]].concat()
        };
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

        let mut about = format!("{}: {} from {name}", grouped(items), grouped(real.len()));
        if items > real.len() {
            // Escaped, because it may hold control characters of a terminal.
            let sample = synthetic(real.len());
            let sample = String::from_utf8_lossy(&sample);
            about += &format!(", {} synthetic such as {}", grouped(items - real.len()), sample.escape_debug());
        }
        about += &format!("; {:.1} bytes on average", (present.len() - items) as f64 / items as f64);
        Ok(Self { present, absent, about })
    }
}

/// The source's name, and its text.
fn read(path: Option<&Path>) -> Result<(String, Vec<u8>), String> {
    let Some(path) = path else {
        return Ok((BUNDLED_NAME.into(), BUNDLED.into()));
    };
    let mut text = Vec::new();
    let (name, read) = if path == Path::new("-") {
        ("standard input".into(), io::stdin().read_to_end(&mut text))
    } else {
        (format!("'{}'", path.display()), File::open(path).and_then(|mut file| file.read_to_end(&mut text)))
    };
    match read {
        Ok(_) => Ok((name, text)),
        Err(error) => Err(format!("can't read the keys from {name}: {error}; give --keys a readable file or -")),
    }
}

/// The lines that are not empty, without their `\n` or `\r\n`.
pub(crate) fn lines(text: &[u8]) -> Vec<&[u8]> {
    let lines = text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty()).collect()
}
