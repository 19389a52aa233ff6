//! CONCURRENT: how the image of a table is read, and how a table is filled from one. `table/save.rs` has the reasoning.

use std::io;
use std::thread::{self, ThreadId};

#[cfg(feature = "snapshot")]
use crate::error::load::LoadError;
use crate::machine::memory::boxed_slice;
use crate::sync::Ordering;
use crate::table::save::{CHUNK, Kept, Save, out_of_memory};
use crate::table::words::Table;
use crate::verify::fault::{self, Fault};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::Geometry;
use crate::word::layout::Layout;

#[cfg_attr(not(any(feature = "snapshot", ccf_model)), allow(dead_code, reason = "only snapshots take images"))]
impl<L: Layout, G: Geometry> Table<L, G> {
    /// Reads an image and hands it on, in the order of the buckets and a chunk at a time; returns how many copies are in it.
    ///
    /// No lock is held while `chunk` runs that any operation but another save waits for. A save that is running already is
    /// waited for.
    ///
    /// # Errors
    /// Those of `chunk`; of the kind `OutOfMemory` if the memory for a kept word was refused; `Deadlock` if this is called
    /// by the `chunk` of a save of the same table.
    pub(crate) fn image(&self, chunk: &mut dyn FnMut(&[u64]) -> io::Result<()>) -> io::Result<u64> {
        let saving = self.saving();
        // Models run all their threads on one.
        let this_thread = (!cfg!(ccf_model)).then(|| thread::current().id());
        if this_thread.is_some() && saving.kept.lock().saver == this_thread {
            let message = "the filter is being saved by the caller of this save, which would wait for itself; save it \
                           elsewhere than in the writer of a save";
            return Err(io::Error::new(io::ErrorKind::Deadlock, message));
        }
        let _turn = saving.turn.lock();
        let save = self.begin_save(this_thread)?;
        self.read_image(&save, chunk)
    }

    /// What [`image`](Self::image) does in its turn when the save has begun.
    pub(crate) fn read_image(
        &self,
        save: &Save<'_>,
        chunk: &mut dyn FnMut(&[u64]) -> io::Result<()>,
    ) -> io::Result<u64> {
        let mut words = [0; CHUNK];
        let mut copies = 0;
        for start in (0..self.words.len()).step_by(CHUNK) {
            let words = &mut words[..CHUNK.min(self.words.len() - start)];
            if !fault::injected(Fault::SaveReadsAfterPassing) {
                self.read(start, words);
            }
            let kept = save.pass(start)?;
            if fault::injected(Fault::SaveReadsAfterPassing) {
                self.read(start, words);
            }
            for (bucket, word) in kept {
                words[bucket - start] = word.0;
            }
            copies += words.iter().map(|&word| self.layout.occupied(Bucket(word)) as u64).sum::<u64>();
            chunk(words)?;
        }
        Ok(copies)
    }

    pub(super) fn read(&self, start: usize, words: &mut [u64]) {
        for (bucket, word) in (start..).zip(words) {
            *word = self.look(bucket).0;
        }
    }

    /// Fills the table, which is empty and nobody else's yet, with the words of an image; returns how many copies are in
    /// it.
    ///
    /// # Errors
    /// Those of `next`, and `DamagedBucket` for the first word that no table of this layout can hold.
    #[cfg(feature = "snapshot")]
    pub(crate) fn fill(&mut self, next: &mut dyn FnMut(&mut [u64]) -> Result<(), LoadError>) -> Result<u64, LoadError> {
        let mut chunk = [0; CHUNK];
        let mut copies = 0;
        for start in (0..self.words.len()).step_by(CHUNK) {
            let words = &mut self.words[start..];
            let chunk = &mut chunk[..CHUNK.min(words.len())];
            next(chunk)?;
            for (nth, (word, &mut read)) in words.iter_mut().zip(chunk).enumerate() {
                if !self.layout.is_valid(Bucket(read)) {
                    return Err(LoadError::DamagedBucket { bucket: start + nth });
                }
                copies += self.layout.occupied(Bucket(read)) as u64;
                *word.get_mut() = read;
            }
        }
        self.counters.add_len(copies as i64);
        Ok(copies)
    }

    /// Begins a save, on this thread.
    pub(crate) fn begin_save(&self, saver: Option<ThreadId>) -> io::Result<Save<'_>> {
        let saving = self.saving();
        let chunks = boxed_slice(self.words.len().div_ceil(CHUNK), Vec::new).ok_or_else(out_of_memory)?;
        let begin = || {
            *saving.kept.lock() = Kept { passed: 0, chunks, refused: false, saver };
            saving.running.store(1, Ordering::Relaxed);
            Save(saving)
        };
        if fault::injected(Fault::SaveLocksInTurn) {
            let save = begin();
            self.settle();
            return Ok(save);
        }
        let _guards = self.lock_all(Fault::SaveWithoutLocks);
        Ok(begin())
    }

    /// The save that has begun in a model and was forgotten.
    #[cfg(ccf_model)]
    pub(crate) fn begun_save(&self) -> Save<'_> {
        Save(self.saving())
    }
}
