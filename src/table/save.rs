//! CONCURRENT: an image of a table's words, read while others insert, relocate and remove. What is written of it stands in
//! `snapshot/format.rs`.
//!
//! # The trouble, and the answer
//! Words are read in the order of the buckets, a chunk at a time, and the caller's writer runs in between, which may take
//! minutes. An item that is relocated meanwhile from a bucket not yet read to one that has been read would be missed, and
//! one that is relocated the other way would be in twice. So *whoever is about to relocate or remove keeps the old words*:
//! while a save is running, a relocation puts aside the words of both its buckets, and a removal that of its bucket,
//! unless it has been put aside already or its chunk has been read. (Operating systems do this with pages: copy on write.)
//! Where a word was kept, the image has that one. Lookups and inserts that find room know nothing of all this.
//!
//! # The rules
//! 1. A save begins at one moment, at which it holds the locks of *all* stripes. There it sets [`Saving::running`].
//! 2. Who holds a stripe's lock looks at `running`. If it is set, a word is kept before the first copy is taken out of it,
//!    and before a relocation puts a copy into it: under the lock of [`Kept`], and only if its chunk has not been passed
//!    and it has not been kept before.
//! 3. The saver reads the words of a chunk, without any lock. *Then*, under the lock of `Kept`, it passes the chunk: takes
//!    what was kept of it, and advances the mark. Kept words replace those that were read.
//! 4. `Kept`'s lock is a leaf: who holds it takes no other, and runs no code of a caller's. So no deadlock.
//!
//! # What is in the image
//! Let `t` be the moment of rule 1. All relocations and removals are made under the lock of a stripe, so each is either
//! over at `t`, and the saver sees all of it, or begins after `t` and, by the lock, sees `running`. Therefore at `t` each
//! copy stands in one bucket and no other; there is no relocation half done.
//!
//! *The image of a bucket is its word at a moment after `t` and before the first time that, after `t`, a copy was taken out
//! of it or put there by a relocation.* Call those changes *moves*. Each is made by a thread that has asked before, under
//! the lock of `Kept`, for the word to be kept. Take the first moment under that lock at which either the bucket's word was
//! kept or its chunk was passed. If it was kept, all moves come later: those of the thread that kept it, by its own order;
//! those of others, because they ask later and find it kept. So the word read for keeping has no trace of a move. If the
//! chunk was passed, then every move comes after that, and the saver had read the word before. (In the sense of
//! happens-before, by the lock; and no read sees a write that happens after it.) What is left are inserts that find room,
//! which only add, and of these the image has those that came before that moment. It has what was there at `t`, since all
//! of that happened before it.
//!
//! It follows:
//!
//! - **Every copy that was in at `t` is in the image exactly once**, in the bucket where it was at `t`, whether it was moved
//!   or removed later or not. An insert that had returned before the save was called has put its copy in before `t`, by
//!   whatever path it made room. So a key that is in throughout the save is in the image, as often as it is in the table;
//!   and a key that was moved by `insert` and `remove` of a twin (`table/stripe.rs`), which carry its only copy elsewhere, is in
//!   by the old copy.
//! - A copy that is inserted after `t` is in at most once: only in the bucket where it was inserted, and there if that was
//!   in time. A relocation later on puts it where the image no longer looks.
//! - What `clear` takes out during the save may be in or not: `clear` keeps nothing. It takes copies out, so it can add
//!   nothing to the image, and what it leaves out of it was taken out of the table.
//!
//! *Why all locks at once.* It is not enough to set `running` and to pass once through the locks, as `Table::settle` does. In
//! between, some relocations would see it, and others that have begun before would not: one of the former keeps bucket `B`
//! as it is without `x`; one of the latter then moves `x` from `A` to `B`; `A` is read when `x` is gone. The fault
//! `SaveLocksInTurn` does so, and a model catches it. Nor may the lists of kept words be made ready before all locks are
//! held: a thread may still be on its way to keep a word for the save before this one.
//!
//! # What it costs
//! Without a save, a relaxed load in relocations and removals, of a word next to what they have read anyway. During a save,
//! also a lock and, for each bucket that is the first time changed by a move ahead of the mark, 16 bytes until its chunk is
//! written: the memory grows with what is moved and removed, not with the table. Memory that is refused fails the save; the
//! operation goes on.

use std::io;
use std::thread::ThreadId;

use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::verify::fault::{self, Fault};
use crate::word::bucket::Bucket;

/// How many words are read, passed and written at a time. One in models, so that a save is many steps there too.
pub(crate) const CHUNK: usize = if cfg!(ccf_model) { 1 } else { 1024 };

/// A table's part in saves.
#[derive(Debug)]
pub(crate) struct Saving {
    /// 1 while words are to be kept, else 0.
    ///
    /// All accesses are relaxed. That it is 1 is known to whoever must know by the lock of a stripe (rule 1); and that it is
    /// 0 again saves work, no more.
    pub(super) running: AtomicU64,
    /// Held by a save from beginning to end, so that there is one at a time. No other operation takes it.
    pub(super) turn: Mutex<()>,
    pub(super) kept: Mutex<Kept>,
}

/// The words that were put aside.
#[derive(Debug)]
pub(super) struct Kept {
    /// Buckets below this one have been passed; all, where no save is running.
    pub(super) passed: usize,
    /// For each chunk its kept words, in the order of the buckets.
    pub(super) chunks: Box<[Vec<(usize, Bucket)>]>,
    /// Whether the memory for a word was refused.
    pub(super) refused: bool,
    /// The thread on which a save is running.
    pub(super) saver: Option<ThreadId>,
}

impl Saving {
    pub(crate) fn new() -> Self {
        Self { running: AtomicU64::new(0), turn: Mutex::new(()), kept: Mutex::new(Kept::none()) }
    }

    /// Whether words are to be kept. For those who hold a stripe's lock.
    #[inline(always)]
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) != 0
    }

    /// Keeps the bucket's word, if it is the first to do so and in time.
    #[cold]
    #[inline(never)]
    pub(crate) fn keep(&self, bucket: usize, look: impl FnOnce() -> Bucket) {
        let mut kept = self.kept.lock();
        if bucket < kept.passed || kept.refused {
            return;
        }
        let chunk = &mut kept.chunks[bucket / CHUNK];
        match chunk.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(place) => {
                if fault::injected(Fault::KeepsLatestWord) {
                    chunk[place].1 = look();
                }
            }
            Err(place) => match chunk.try_reserve(1) {
                Ok(()) => chunk.insert(place, (bucket, look())),
                Err(_) => kept.refused = true,
            },
        }
    }
}

impl Kept {
    fn none() -> Self {
        Self { passed: usize::MAX, chunks: Box::default(), refused: false, saver: None }
    }
}

/// A save from its beginning to its end, whatever the end is.
pub(crate) struct Save<'a>(pub(super) &'a Saving);

impl Drop for Save<'_> {
    fn drop(&mut self) {
        let Self(saving) = self;
        saving.running.store(0, Ordering::Relaxed);
        let kept = std::mem::replace(&mut *saving.kept.lock(), Kept::none());
        drop(kept); // not under the lock
    }
}

impl Save<'_> {
    /// Passes the chunk from this bucket on and returns what was kept of it.
    pub(super) fn pass(&self, start: usize) -> io::Result<Vec<(usize, Bucket)>> {
        let mut kept = self.0.kept.lock();
        if kept.refused {
            drop(kept);
            return Err(out_of_memory());
        }
        kept.passed = start + CHUNK;
        Ok(std::mem::take(&mut kept.chunks[start / CHUNK]))
    }
}

pub(super) fn out_of_memory() -> io::Error {
    let message = "the memory was refused in which a save keeps what is removed or relocated meanwhile; save again, with \
                   more memory, a faster writer or fewer removals";
    io::Error::new(io::ErrorKind::OutOfMemory, message)
}
