//! CONCURRENT: how the image of a table is read, and how a table gets one. `table/image/save.rs` has the
//! reasoning.

use std::io;

use crate::error::memory::OutOfMemory;
#[cfg(feature = "snapshot")]
use crate::sync::Ordering;
use crate::sync::sizes::CHUNK;
use crate::table::expiring::clock::Clock;
use crate::table::image::save::{SaveNumber, SetAside};
use crate::table::table::Table;
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::layout::Layout;

/// Reads an image of this many buckets by `read`, which reads a chunk from a bucket on, and passes it to `chunk`: in the
/// order of the buckets and a chunk at a time. Returns how many copies are in it. No lock is held while `chunk` runs.
///
/// # Errors
/// Those of `chunk`; of the kind `OutOfMemory` if a word set aside could not be allocated.
pub(crate) fn each_chunk(
    buckets: usize,
    read: impl Fn(usize, &mut [u64]) -> Result<u64, OutOfMemory>,
    chunk: &mut dyn FnMut(&[u64]) -> io::Result<()>,
) -> io::Result<u64> {
    let mut words = [0; CHUNK];
    let mut copies = 0;
    for start in (0..buckets).step_by(CHUNK) {
        let words = &mut words[..CHUNK.min(buckets - start)];
        copies += read(start, words)?;
        chunk(words)?;
    }
    Ok(copies)
}

impl<L: Layout> Table<L> {
    /// Begins a save: the image will be that of this moment. It waits only for threads that hold a stripe's lock.
    pub(crate) fn begin_save(&self) -> Result<SaveNumber, OutOfMemory> {
        let set_aside = SetAside::new(self.words.len())?;
        self.under_all_locks(|all| self.saving().begin(all, set_aside.at(self.clock().map(Clock::read))))
    }

    pub(crate) fn read_chunk(&self, save: SaveNumber, start: usize, words: &mut [u64]) -> Result<u64, OutOfMemory> {
        self.read(start, words);
        let set_aside = self.saving().pass(save, start)?;
        for (bucket, word) in set_aside {
            words[bucket - start] = word.0;
        }
        Ok(words.iter().map(|&word| self.layout.occupied(Bucket(word)) as u64).sum())
    }

    fn read(&self, start: usize, words: &mut [u64]) {
        for (bucket, word) in (start..).zip(words) {
            *word = self.load(bucket).0;
        }
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn fill_from(&self, start: usize, words: &[u64]) {
        let mut copies = 0;
        for (word, &put) in self.words[start..].iter().zip(words) {
            copies += self.layout.occupied(Bucket(put)) as i64;
            // Relaxed: a thread that gets the table later gets its words with it.
            word.store(put, Ordering::Relaxed);
        }
        self.counters.add_len(copies);
    }
}
