//! The keys: real ones from a list, synthetic ones made of them, and absent ones that are never inserted.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::HumanCount;

use crate::failure::Failure;
use crate::progress::Progress;

/// `examples/data/README.md` says where it comes from.
const BUNDLED: &[u8] = include_bytes!("../../data/disposable-email-domains.txt");
const BUNDLED_NAME: &str = "examples/data/disposable-email-domains.txt";

/// A synthetic key takes at most so many bytes of a real one. Otherwise a file without line ends could use up all
/// memory.
const LONGEST_BASE: usize = 64;

/// Enough absent keys to measure a rate, and few enough to be quick.
const ABSENT_KEYS: Range<usize> = 100_000..2_000_000;

/// How many keys to make between two updates of the progress bar.
const BATCH: usize = 16_384;

/// The text with the real keys.
pub(crate) struct Source {
    pub(crate) name: String,
    text: Cow<'static, [u8]>,
}

impl Source {
    /// Reads the file, or standard input for `-`. Without a path, takes the list that comes with the example.
    pub(crate) fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self { name: BUNDLED_NAME.into(), text: BUNDLED.into() });
        };
        let (name, text) = if path == Path::new("-") {
            let mut text = Vec::new();
            ("standard input".into(), io::stdin().read_to_end(&mut text).map(|_| text))
        } else {
            (format!("'{}'", path.display()), fs::read(path))
        };
        match text {
            Ok(text) => Ok(Self { name, text: text.into() }),
            Err(error) => Err(Failure::Keys(format!(
                "can't read the keys from {name}: {error}; give --keys a readable file with one key a line, \
                 or - for standard input"
            ))),
        }
    }
}

/// The distinct keys of a source, in its order.
pub(crate) struct RealKeys<'a> {
    pub(crate) keys: Vec<&'a [u8]>,
    /// How many lines repeated an earlier line.
    pub(crate) duplicates: usize,
    /// How many keys the source has beyond `keys`.
    pub(crate) left_out: usize,
}

impl<'a> RealKeys<'a> {
    /// A key is a line without its `\n` or `\r\n`. It may be any bytes, but not empty.
    pub(crate) fn parse(source: &'a Source) -> Result<Self, Failure> {
        let mut seen = HashSet::new();
        let mut keys = Vec::new();
        let mut duplicates = 0;
        for line in source.text.split(|&byte| byte == b'\n') {
            let key = line.strip_suffix(b"\r").unwrap_or(line);
            if key.is_empty() {
                continue;
            }
            if seen.insert(key) {
                keys.push(key);
            } else {
                duplicates += 1;
            }
        }
        if keys.is_empty() {
            return Err(Failure::Keys(format!("{} holds no key; give it one key a line", source.name)));
        }
        Ok(Self { keys, duplicates, left_out: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn keep_first(&mut self, items: usize) {
        self.left_out = self.len().saturating_sub(items);
        self.keys.truncate(items);
    }
}

/// All keys of a run. No key occurs twice.
pub(crate) struct KeySet {
    present: KeyBuffer,
    absent: KeyBuffer,
    /// How many of the present keys are synthetic.
    pub(crate) synthetic: usize,
    /// One of the synthetic keys, for the report.
    pub(crate) sample: String,
}

impl KeySet {
    /// As many present keys as there are items, the real ones included, and a number of absent ones.
    ///
    /// A synthetic key is an address at a real one, such as `user12345@mailinator.com`. It is about as long as real
    /// keys are, so hashing costs what it costs in practice. Absent keys are made in the same way. No number is used
    /// twice, and no real key begins like a synthetic one, so all keys differ.
    pub(crate) fn generate(real: &RealKeys<'_>, items: usize, progress: &Progress) -> Result<Self, Failure> {
        let synthesis = Synthesis::of(&real.keys);
        let synthetic = items - real.len();
        let absent_keys = items.clamp(ABSENT_KEYS.start, ABSENT_KEYS.end);
        let numbers = items + absent_keys;

        let real_bytes = real.keys.iter().map(|key| key.len()).sum::<usize>();
        let mut present = KeyBuffer::with_room_for(items, real_bytes + synthesis.most_bytes(synthetic, numbers))?;
        let mut absent = KeyBuffer::with_room_for(absent_keys, synthesis.most_bytes(absent_keys, numbers))?;

        let started = Instant::now();
        let stage = progress.stage("preparing keys", numbers as u64, Duration::ZERO);
        // In random order, and stored in that order. So a thread that goes through its keys reads memory in sequence,
        // and only the filter makes it wait. That is realistic: a key has usually just been received.
        for (done, number) in shuffled(items).into_iter().enumerate() {
            match real.keys.get(number) {
                Some(key) => present.push(&[key]),
                None => synthesis.push(number, &mut present),
            }
            if done % BATCH == 0 {
                stage.update(done as u64, started.elapsed());
            }
        }
        for number in items..numbers {
            synthesis.push(number, &mut absent);
            if number % BATCH == 0 {
                stage.update(number as u64, started.elapsed());
            }
        }
        stage.finish(numbers as u64, started.elapsed());

        let mut sample = KeyBuffer::default();
        synthesis.push(real.len(), &mut sample);
        // Escaped, because it may hold control characters of a terminal.
        let sample = String::from_utf8_lossy(&sample.bytes).escape_debug().to_string();
        Ok(Self { present, absent, synthetic, sample })
    }

    pub(crate) fn present(&self) -> Keys<'_> {
        self.present.keys()
    }

    pub(crate) fn absent(&self) -> Keys<'_> {
        self.absent.keys()
    }
}

/// How synthetic keys are made from real ones.
struct Synthesis<'a> {
    real: &'a [&'a [u8]],
    /// No real key begins with this.
    prefix: String,
}

impl<'a> Synthesis<'a> {
    fn of(real: &'a [&'a [u8]]) -> Self {
        let mut prefix = "user".to_owned();
        while real.iter().any(|key| key.starts_with(prefix.as_bytes())) {
            prefix.push('-');
        }
        Self { real, prefix }
    }

    fn base(&self, number: usize) -> &[u8] {
        let key = self.real[number % self.real.len()];
        &key[..key.len().min(LONGEST_BASE)]
    }

    fn push(&self, number: usize, keys: &mut KeyBuffer) {
        keys.push(&[self.prefix.as_bytes(), number.to_string().as_bytes(), b"@", self.base(number)]);
    }

    /// The most bytes that so many keys with consecutive numbers below `end` can take.
    fn most_bytes(&self, keys: usize, end: usize) -> usize {
        let bases = (0..self.real.len()).map(|number| self.base(number).len()).sum::<usize>();
        let rounds = keys.div_ceil(self.real.len()) + 1;
        rounds * bases + keys * (self.prefix.len() + end.to_string().len() + 1)
    }
}

/// Many keys in one piece of memory. A `Vec` of `Vec`s would take three words and an allocation for each key.
#[derive(Default)]
struct KeyBuffer {
    bytes: Vec<u8>,
    /// The begin of each key, and the end of the last one.
    offsets: Vec<usize>,
}

impl KeyBuffer {
    fn with_room_for(keys: usize, bytes: usize) -> Result<Self, Failure> {
        let mut buffer = Self::default();
        let reserved = buffer.bytes.try_reserve_exact(bytes).and_then(|()| buffer.offsets.try_reserve_exact(keys + 1));
        if reserved.is_err() {
            return Err(Failure::Keys(format!(
                "the memory for {} keys, {} bytes, was refused; give a smaller number of --items",
                HumanCount(keys as u64),
                HumanCount((bytes + keys * size_of::<usize>()) as u64)
            )));
        }
        buffer.offsets.push(0);
        Ok(buffer)
    }

    fn push(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.offsets.push(self.bytes.len());
    }

    fn keys(&self) -> Keys<'_> {
        Keys { bytes: &self.bytes, offsets: &self.offsets }
    }
}

/// A view of consecutive keys.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    bytes: &'a [u8],
    offsets: &'a [usize],
}

impl<'a> Keys<'a> {
    pub(crate) fn len(self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn total_bytes(self) -> usize {
        self.offsets[self.len()] - self.offsets[0]
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.offsets.windows(2).map(move |ends| &self.bytes[ends[0]..ends[1]])
    }

    pub(crate) fn range(self, range: Range<usize>) -> Self {
        Self { offsets: &self.offsets[range.start..=range.end], ..self }
    }

    /// One of `threads` parts. All parts together are the whole.
    pub(crate) fn share(self, index: usize, threads: usize) -> Self {
        self.range(self.len() * index / threads..self.len() * (index + 1) / threads)
    }

    pub(crate) fn chunks(self, size: usize) -> impl Iterator<Item = Self> {
        (0..self.len()).step_by(size).map(move |start| self.range(start..self.len().min(start + size)))
    }
}

/// The numbers below `count` in random order, the same in each run.
fn shuffled(count: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    // SplitMix64 and the Fisher–Yates shuffle.
    let mut state = 0_u64;
    for last in (1..count).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        numbers.swap(last, ((mixed ^ (mixed >> 31)) % (last as u64 + 1)) as usize);
    }
    numbers
}
