//! CONCURRENT: an image of a table's words, read while others insert, relocate and remove. `snapshot/format.rs`
//! describes what is written of it.
//!
//! # The problem and the solution
//! CopiedChunk are read in the order of the buckets, a chunk at a time. The caller's writer runs in between, which may take
//! minutes. Meanwhile an item may be relocated from an unread bucket to one that has been read: the save would miss it.
//! One that is relocated the other way would be in the image twice. So *a thread that is about to change a word copies
//! the old one for the save*. While a save is running, a relocation copies the words of both its buckets, and a removal or
//! an insert that of its bucket. They do so unless the word has been copied already or its chunk has been read.
//! (This is copy-on-write.) Where a word was copied, the image has that
//! one. Lookups need to know nothing of all this.
//!
//! A *save*, here and in the names of the code, is any use of an image: to write a snapshot, to compute a digest, or to
//! merge the table into another one (`TableImage` in `table/image/read.rs`). Any number of saves may run at a time.
//! Each has its own copied words and its own mark, so none waits for another.
//!
//! # The rules
//! 1. A save begins at one moment, at which it holds the locks of *all* stripes. At that moment it joins the list
//!    [`RunningSaves::saves`] and adds one to [`RunningSaves::count`].
//! 2. A thread that holds a stripe's lock reads `count`. If it is not 0, the thread copies a word, for each save
//!    in the list, before the first copy is removed from it and before a relocation puts a copy into it. It does so
//!    under the lock of the list, and for a save only if that save has not passed the word's chunk and has no word of
//!    this bucket yet.
//!
//!    An insert that finds room holds no lock. It reads `count` too, and copies the word before it adds to it. It
//!    may read too early, and add after the save has begun. But that cannot happen if the insert begins after the save
//!    has begun, in the sense of happens-before.
//! 3. The saver reads the words of a chunk, without any lock. *Then*, under the lock of the list, it passes the
//!    chunk: it takes the words of it that were copied, and advances the mark. Copied words replace those that were read.
//! 4. The lock of the list is a leaf: a thread that holds it takes no other lock.
//! 5. **The memory for a word is there before any lock is taken, and goes back after all are released**: a program's
//!    global allocator is code of the caller, and may use the filter. A thread copies a word into a node of a [`Spare`],
//!    which it has filled when it held no lock. A save joins the list as a node that was made before.
//!
//! A thread that takes the lock of a stripe, or those of all, reads `count` under it. If it has too few nodes for so many
//! saves, it releases the lock, fills its `Spare`, and begins again ([`RunningSaves::lock_to_change`]). While it holds the
//! lock, no save begins, so it has enough: *a save that begins between the filling and the lock makes it begin again.* A
//! thread that may hold no lock of a stripe (an insert that finds room, or a sweep) cannot exclude a beginning. It asks
//! whether all saves have got the word ([`RunningSaves::try_copy_for_saves`]), and changes nothing before they have. If a save
//! has not, it leaves its locks, fills its `Spare`, and asks again. Saves that have the word by then keep it.
//!
//! In a table that grows, every change of a word holds the bucket's gate, and a save begins with all gates too. Splits and
//! merges also copy words. So no insert overlaps the beginning: see *Saves* in `growth/mod.rs`.
//!
//! # What is in the image
//! Let `t` be the moment of rule 1. All relocations and removals are made under the lock of a stripe. (A sweep of expired
//! entries holds none: see *Saves* in `table/expiring/mod.rs`.) So each is
//! either over at `t`, and the saver sees all of it, or begins after `t`. One that begins after `t` sees, by the
//! lock, that `count` counts this save: it reads the value that this save has written or a later one, and none of
//! those is 0 before the save has ended. Therefore at `t` each copy is in one bucket and no other; no relocation is
//! half done.
//!
//! *The image of a bucket is its word at a moment after `t` and before the first time that, after `t`, a copy was
//! removed from it or put there by a relocation.* Call those changes *moves*. Before each move, the thread that makes
//! it has asked, under the lock of the list, for the word to be copied. Take the first moment under that lock at
//! which, for this save, either the bucket's word was copied or its chunk was passed.
//!
//! - If the word was copied, all moves come later. Those of the thread that did it come later by that thread's own
//!   order. Those of others come later because they ask later and find it done. So the word that was copied has no
//!   trace of a move.
//! - If the chunk was passed, every move comes after that, and the saver had read the word before. (In the sense of
//!   happens-before, by the lock; and no read sees a write that happens after it.)
//!
//! What is left are inserts that find room, which only add. An insert that begins after the save has begun asks for the
//! word to be copied before it adds to it, like a move, so the image does not have it. Of the inserts that overlap
//! the beginning, the image has those that came before the image's word was read. It also has what was there at `t`,
//! since all of that happened before that reading. Other saves make no difference: their words and marks are their own.
//!
//! It follows:
//!
//! - **Every copy that was in at `t` is in the image exactly once**, in the bucket where it was at `t`, whether or
//!   not it was moved or removed later. An insert that had returned before the save began has put its copy in before
//!   `t`, by whatever path it made room. So a key that is in when the save begins is in the image, as often as it is
//!   in the table. That also holds for a key whose only copy was carried elsewhere by `insert` and `remove` of a twin
//!   (`table/stripe.rs`): the image has the old copy.
//! - **A copy whose insert begins after the save has begun is not in the image.** Suppose that no insert overlaps the
//!   beginning, for example because one thread makes all changes and begins the save between two of them. Then the
//!   image is exactly the table as it was at that moment.
//! - A copy whose insert overlaps the beginning is in at most once: only in the bucket where it was inserted, and only
//!   if that was in time. A later relocation puts it into a bucket that is no longer read.
//! - What `clear` removes during the save may be in or not, since `clear` copies nothing. It removes copies, so
//!   it can add nothing to the image. What the image lacks because of it was removed from the table.
//!
//! *Why all locks at once.* It is not enough to join the list and to pass once through the locks, as `drain_writers` in
//! `table/stripe.rs` does. In between, some relocations would see the save, and others that began earlier would not.
//! Suppose that one of the former copies bucket `B` as it is without `x`. Then one of the latter moves `x` from `A`
//! to `B`, and `A` is read when `x` is gone. A control does this, and a model catches it.
//!
//! # What it costs
//! The guide has it (`consistency`). If the allocation for a word fails, the save fails, and the operation continues.

use crate::error::memory::OutOfMemory;
use crate::machine::memory::{boxed, boxed_slice};
use crate::sync::sizes::CHUNK;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::table::expiring::clock::ClockState;
use crate::table::image::spare::{CopiedChunk, Spare};
use crate::table::stripe::{AllLocked, Guard, Stripe};
use crate::word::bucket::Bucket;

#[derive(Debug)]
pub(crate) struct RunningSaves {
    /// How many saves are running. While it is not 0, words are to be copied.
    ///
    /// All accesses are relaxed. A thread that must know that it is not 0 knows so by the lock of a stripe (rule 1).
    /// Knowing that it is 0 again only saves work.
    count: AtomicU64,
    /// The list, from the latest one on.
    saves: Mutex<Option<Box<CopiedWords>>>,
}

/// The words that were copied for one save.
#[derive(Debug)]
pub(crate) struct CopiedWords {
    save: u64,
    buckets: usize,
    /// Buckets below this one have been passed.
    passed: usize,
    chunks: Box<[CopiedChunk]>,
    failed: bool,
    clock_state: Option<ClockState>,
    next: Option<Box<CopiedWords>>,
}

impl CopiedWords {
    /// No words yet, for a table of this many buckets.
    pub(crate) fn new(buckets: usize) -> Result<Box<CopiedWords>, OutOfMemory> {
        let chunks = boxed_slice(buckets.div_ceil(CHUNK), CopiedChunk::default).ok_or_else(OutOfMemory::new)?;
        let new = Self { save: 0, buckets, passed: 0, chunks, failed: false, clock_state: None, next: None };
        boxed(new).ok_or_else(OutOfMemory::new)
    }

    /// Whether there is room for the words of a table that has this many buckets by now. From now on it is for that.
    pub(crate) fn resize(&mut self, buckets: usize) -> bool {
        self.buckets = buckets;
        buckets.div_ceil(CHUNK) <= self.chunks.len()
    }

    /// Copies the bucket's word, unless that was done before or its chunk has been passed. `false` if that needs a
    /// node, and the thread may get one.
    fn copy(&mut self, bucket: usize, word: Bucket, spare: &Spare) -> bool {
        if bucket < self.passed || bucket >= self.buckets || self.failed {
            return true;
        }
        // Two buckets of a chunk differ in the lowest bits of their numbers.
        let (mut place, mut bits) = (&mut self.chunks[bucket / CHUNK].0, bucket);
        while let Some(node) = place {
            if node.bucket == bucket as u32 {
                return true;
            }
            place = &mut node.next[bits & 1];
            bits >>= 1;
        }
        *place = spare.node(bucket, word);
        if place.is_none() {
            self.failed = spare.is_final();
            return self.failed;
        }
        true
    }
}

/// The lock of a stripe, or those of all, for changes of words: with memory for what they copy for saves.
pub(crate) struct Changing<'a> {
    pub(crate) guard: Guard<'a>,
    /// `None` if no save was running when the stripe was locked: then none is until it is released.
    own: Option<Spare>,
    of_all: Option<&'a Spare>,
}

impl<'a> Changing<'a> {
    /// The right that goes with this stripe, for a thread that holds the locks of all.
    pub(crate) fn with_all(saves: &RunningSaves, stripe: &'a Stripe, all: &'a AllLocked<'_>) -> Self {
        Self { guard: stripe.locked_with_all(all), own: None, of_all: saves.spare_if_running(all.spare) }
    }

    /// `None` if no save is running.
    #[inline(always)]
    pub(crate) fn spare(&self) -> Option<&Spare> {
        self.own.as_ref().or(self.of_all)
    }
}

impl RunningSaves {
    pub(crate) fn new() -> Self {
        Self { count: AtomicU64::new(0), saves: Mutex::new(None) }
    }

    /// How many saves are running.
    #[inline(always)]
    fn running(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether words are to be copied. For callers that hold a stripe's lock, and for inserts (rule 2).
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        self.running() != 0
    }

    /// Fills the thread's spare memory for so many words. The caller holds no lock.
    #[inline]
    pub(crate) fn fill(&self, spare: &Spare, words: u64) {
        let running = self.running();
        if running > 0 {
            spare.fill(running.saturating_mul(words));
        }
    }

    /// The spare memory, if a save is running. For callers that hold a stripe's lock, or a gate.
    #[inline]
    pub(crate) fn spare_if_running<'a>(&self, spare: Option<&'a Spare>) -> Option<&'a Spare> {
        if self.any() { spare } else { None }
    }

    /// Whether the thread can copy so many words for each save that is running. While it holds the lock of a stripe
    /// or a gate, no further one begins.
    #[inline]
    pub(crate) fn has_enough(&self, spare: &Spare, words: u64) -> bool {
        spare.suffices(self.running().saturating_mul(words))
    }

    /// Locks a stripe by `lock`, to change at most so many words.
    #[inline(always)]
    pub(crate) fn lock_to_change<'a>(&self, words: u64, lock: impl Fn() -> Guard<'a>) -> Changing<'a> {
        let guard = lock();
        let running = self.running();
        if running == 0 {
            return Changing { guard, own: None, of_all: None };
        }
        drop(guard);
        self.lock_with_spare(words, running, &lock)
    }

    /// `lock_to_change` while a save is running.
    #[cold]
    #[inline(never)]
    fn lock_with_spare<'a>(&self, words: u64, mut running: u64, lock: &dyn Fn() -> Guard<'a>) -> Changing<'a> {
        let spare = Spare::default();
        loop {
            spare.fill(running.saturating_mul(words));
            let guard = lock();
            running = self.running();
            if spare.suffices(running.saturating_mul(words)) {
                return Changing { guard, own: Some(spare), of_all: None };
            }
            // A save has begun meanwhile.
        }
    }

    /// This lock of a stripe, to change at most so many words with spare memory that the thread has got before. `None` if
    /// that is too little.
    pub(crate) fn lock_with<'a>(&self, spare: &'a Spare, words: u64, guard: Guard<'a>) -> Option<Changing<'a>> {
        self.has_enough(spare, words).then_some(Changing { guard, own: None, of_all: Some(spare) })
    }

    /// Copies the bucket's word for each save that is running. `false` if a save has not got it, because the thread
    /// has too little spare memory.
    #[cold]
    #[inline(never)]
    pub(crate) fn try_copy_for_saves(&self, bucket: usize, load: &dyn Fn() -> Bucket, spare: &Spare) -> bool {
        let mut saves = self.saves.lock();
        let (word, mut is_done) = (load(), true);
        let mut next = saves.as_deref_mut();
        while let Some(save) = next {
            is_done &= save.copy(bucket, word, spare);
            next = save.next.as_deref_mut();
        }
        is_done
    }

    /// The same for a thread that has enough spare memory, unless there was none. (If it had too little all the same,
    /// saves would fail, and not miss the word.)
    #[cold]
    #[inline(never)]
    pub(crate) fn copy_for_saves(&self, bucket: usize, load: &dyn Fn() -> Bucket, spare: &Spare) {
        if !self.try_copy_for_saves(bucket, load, spare) {
            spare.end();
            self.try_copy_for_saves(bucket, load, spare);
        }
    }

    /// Begins a save, at this moment.
    pub(crate) fn begin(
        &self,
        _: &AllLocked<'_>,
        mut begun: Box<CopiedWords>,
        clock_state: Option<ClockState>,
    ) -> SaveNumber {
        let mut saves = self.saves.lock();
        // No other save that is running has this number: the latest one is the first in the list.
        let save = saves.as_deref().map_or(0, |latest| latest.save + 1);
        (begun.save, begun.clock_state, begun.next) = (save, clock_state, saves.take());
        *saves = Some(begun);
        self.count.fetch_add(1, Ordering::Relaxed);
        SaveNumber(save)
    }

    /// The reading of the table's clock at the moment of a save that is running, if the table has a clock.
    pub(crate) fn clock_state(&self, save: SaveNumber) -> Option<ClockState> {
        running(&mut self.saves.lock(), save).clock_state
    }

    pub(crate) fn buckets(&self, save: SaveNumber) -> usize {
        running(&mut self.saves.lock(), save).buckets
    }

    /// Passes the chunk from this bucket on and returns what was copied of it.
    pub(crate) fn pass(&self, save: SaveNumber, start: usize) -> Result<CopiedChunk, OutOfMemory> {
        let mut saves = self.saves.lock();
        let running = running(&mut saves, save);
        if running.failed {
            drop(saves);
            return Err(OutOfMemory::new());
        }
        running.passed = start + CHUNK;
        Ok(core::mem::take(&mut running.chunks[start / CHUNK]))
    }

    pub(crate) fn end(&self, save: SaveNumber) {
        let ended = {
            let mut saves = self.saves.lock();
            let mut place = &mut *saves;
            while place.as_deref().is_some_and(|running| running.save != save.0) {
                place = &mut place.as_deref_mut().expect("it was there a moment ago").next;
            }
            let mut ended = place.take();
            *place = ended.as_deref_mut().and_then(|ended| ended.next.take());
            ended
        };
        // In any order: while the count is still raised, words are copied for those saves that are in the list.
        self.count.fetch_sub(1, Ordering::Relaxed);
        drop(ended); // not under the lock
    }
}

/// The number of a save of one table that is running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaveNumber(u64);

fn running(saves: &mut Option<Box<CopiedWords>>, save: SaveNumber) -> &mut CopiedWords {
    let mut next = saves.as_deref_mut();
    while let Some(running) = next {
        if running.save == save.0 {
            return running;
        }
        next = running.next.as_deref_mut();
    }
    panic!("a running save is in the list")
}
