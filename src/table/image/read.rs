//! CONCURRENT: images of a table, whether it grows or not: how they are read, and how a table gets one.
//! `table/image/copy_on_write.rs` has the reasoning.

use core::fmt::{self, Debug};
#[cfg(feature = "snapshot")]
use std::sync::Arc;

use crate::error::kind::FilterKind;
use crate::error::memory::OutOfMemory;
#[cfg(feature = "snapshot")]
use crate::plan::sizing::LoadLimit;
use crate::sync::sizes::CHUNK;
#[cfg(feature = "snapshot")]
use crate::sync::{AtomicU64, Ordering};
use crate::table::expiring::clock::ClockState;
use crate::table::image::copy_on_write::{RunningSaves, SaveNumber};
use crate::word::bucket::Bucket;
use crate::word::digest;
use crate::word::layout::Shape;

/// A table of which there can be images: point-in-time views of its words.
pub(crate) trait ImageSource: Send + Sync {
    /// The saves that are running.
    fn running_saves(&self) -> &RunningSaves;

    /// Begins a save: the image will be that of this moment. It waits only for threads that hold a lock.
    fn begin_save(&self) -> Result<SaveNumber, OutOfMemory>;

    /// What a bucket holds now.
    fn load(&self, bucket: usize) -> Bucket;

    /// A bucket's word.
    #[cfg(feature = "snapshot")]
    fn word(&self, bucket: usize) -> &AtomicU64;

    /// The shape of the table while it has this many buckets.
    fn shape_of(&self, buckets: usize) -> Shape;

    #[cfg(feature = "snapshot")]
    fn limit(&self) -> LoadLimit;

    /// What classes are, and which tables can be merged: tables of the same numbers have the same classes.
    fn of_classes(&self) -> [u64; 5];

    /// How many copies there are in these words of an image of `buckets` buckets, of which they are those from `start` on.
    fn copies_in(&self, buckets: usize, start: usize, words: &[u64]) -> u64;

    /// The sum of the digests of the copies in these words of an image. If entries expire, that of those that are live by
    /// this reading.
    fn digest_of(&self, buckets: usize, clock_state: Option<ClockState>, start: usize, words: &[u64]) -> u64;

    /// Reads the words from this bucket on, as they are now.
    fn read(&self, start: usize, words: &mut [u64]) {
        for (bucket, word) in (start..).zip(words) {
            *word = self.load(bucket).0;
        }
    }

    /// Stores the words of an image from this bucket on, in an empty table of as many buckets that no other thread has yet.
    #[cfg(feature = "snapshot")]
    fn fill_from(&self, start: usize, words: &[u64]) {
        for (bucket, &word) in (start..).zip(words) {
            // Relaxed: a thread that gets the table later gets its words with it.
            self.word(bucket).store(word, Ordering::Relaxed);
        }
    }
}

impl dyn ImageSource + '_ {
    /// Reads the words from this bucket on, as they were at the moment of a save of this table: as many as a chunk has, or
    /// as there are. Chunks are read in order, and once. Returns how many copies are in this one.
    pub(crate) fn read_chunk(&self, save: SaveNumber, start: usize, words: &mut [u64]) -> Result<u64, OutOfMemory> {
        self.read(start, words);
        let copied = self.running_saves().pass(save, start)?;
        copied.each(&mut |bucket, word| words[bucket - start] = word.0);
        Ok(self.copies_in(self.running_saves().buckets(save), start, words))
    }
}

/// A filter that an image keeps alive.
#[cfg(feature = "snapshot")]
pub(crate) trait HasImageSource: Send + Sync {
    fn image_source(&self) -> &(dyn ImageSource + 'static);
}

enum Held<'a> {
    Borrowed(&'a dyn ImageSource),
    #[cfg(feature = "snapshot")]
    Shared(Arc<dyn HasImageSource + 'a>),
}

/// A table as it was at a moment that is past: that of a save, which ends when this is dropped. (A digest and a merge
/// are saves too: they read the image, and write no snapshot.)
pub(crate) struct TableImage<'a> {
    held: Held<'a>,
    save: SaveNumber,
}

impl<'a> TableImage<'a> {
    /// Begins a save of the table, at this moment.
    pub(crate) fn begin(table: &'a dyn ImageSource) -> Result<Self, OutOfMemory> {
        Ok(Self { save: table.begin_save()?, held: Held::Borrowed(table) })
    }

    /// The same of a filter that the image keeps alive.
    #[cfg(feature = "snapshot")]
    pub(crate) fn begin_shared(filter: Arc<dyn HasImageSource + 'a>) -> Result<Self, OutOfMemory> {
        Ok(Self { save: filter.image_source().begin_save()?, held: Held::Shared(filter) })
    }

    fn table(&self) -> &dyn ImageSource {
        match &self.held {
            Held::Borrowed(table) => *table,
            #[cfg(feature = "snapshot")]
            Held::Shared(filter) => filter.image_source(),
        }
    }

    /// What the table's clock showed at that moment, if it has a clock.
    pub(crate) fn clock_state(&self) -> Option<ClockState> {
        self.table().running_saves().clock_state(self.save)
    }

    /// The shape of the table, and its number of buckets, at that moment.
    pub(crate) fn layout(&self) -> (Shape, usize) {
        let buckets = self.table().running_saves().buckets(self.save);
        (self.table().shape_of(buckets), buckets)
    }

    #[cfg(feature = "snapshot")]
    pub(crate) fn limit(&self) -> LoadLimit {
        self.table().limit()
    }

    /// `ImageSource::read_chunk` of this save.
    pub(crate) fn read_chunk(&self, start: usize, words: &mut [u64]) -> Result<u64, OutOfMemory> {
        self.table().read_chunk(self.save, start, words)
    }

    /// Passes the words to `chunk`, a chunk at a time, each with the number of its first bucket: in the order of the buckets,
    /// until `chunk` fails. No lock is held while it runs. Returns how many copies are in them.
    ///
    /// # Errors
    /// Those of `chunk`, and that no memory was left to copy a word.
    pub(crate) fn read<E: From<OutOfMemory>>(
        &self,
        mut chunk: impl FnMut(usize, &[u64]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (mut words, mut copies) = ([0; CHUNK], 0);
        let buckets = self.layout().1;
        for start in (0..buckets).step_by(CHUNK) {
            let words = &mut words[..CHUNK.min(buckets - start)];
            copies += self.read_chunk(start, words)?;
            chunk(start, words)?;
        }
        Ok(copies)
    }

    /// The digest, at the moment of the save, of a filter of this kind with this probe.
    pub(crate) fn digest(&self, kind: FilterKind, probe: u64) -> Result<u64, OutOfMemory> {
        let (buckets, clock_state, mut sum) = (self.layout().1, self.clock_state(), 0u64);
        self.read(|start, words| {
            sum = sum.wrapping_add(self.table().digest_of(buckets, clock_state, start, words));
            Ok::<_, OutOfMemory>(())
        })?;
        let kind = u64::from(kind.number());
        let numbers = self.table().of_classes();
        Ok([kind].into_iter().chain(numbers).chain([probe, sum]).fold(0, digest::with))
    }
}

impl Drop for TableImage<'_> {
    fn drop(&mut self) {
        self.table().running_saves().end(self.save);
    }
}

impl Debug for TableImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableImage").field("save", &self.save).finish_non_exhaustive()
    }
}
