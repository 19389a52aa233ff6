//! CONCURRENT: the bucket words, and the steps on them that all operations consist of. `table/stripe.rs` has the
//! protocol, its rules and its proof. From the bottom up: `load` and `exchange` are one access to a word; `change`
//! repeats `exchange` until it succeeds; `put` adds to one bucket, `add` and `add_slow` to either of an item's two.
//!
//! # The steps that add a copy
//! Each adds a further copy if the buckets hold some already: whoever wants no second one looks for it first. None adds to
//! `len`: that is left to the caller. In a table whose slots have payloads, the caller of each has locked the item's stripe,
//! and has announced the copy (`bump_to_add`).
//!
//! | step | adds to | lock of the caller, where slots have no payload | if a save is running |
//! |---|---|---|---|
//! | `add` | the emptier bucket, if no other thread changes that meanwhile | any or none | it may not be called |
//! | `add_slow` | the emptier bucket or, if that is full, the other | none, or those of all stripes | first copies the word, and gets the memory for that unless all stripes are locked |
//! | `add_locked` | as `add_slow` | the item's stripe, to change two words | first copies the word |
//! | `add_with_spare` | as `add_slow` | any or none | first copies the word; `NeedsSpare` if its memory is not enough |
//! | `put` | one bucket | any or none | the caller has copied the word |
//!
//! # Memory of a small table
//! A filter for 100 keys takes 664 bytes on a 64-bit machine: the words of 32 buckets 256 (fewer would not do with the
//! certainty of `plan/sizing.rs`), [`Table`] 160, the value with its hasher 64, the counters 128, what saves need 24, and
//! two stripes 32. Beyond the words and the value, most is there for speed: the layout and the geometry are read where
//! they are used, without another pointer, and what threads count is padded to cache lines of its own.

use crate::machine::arch::{at, at_step};
use crate::machine::memory::{Pages, boxed, boxed_slice, words_on};
use crate::plan::sizing::{self, LoadLimit};
use crate::sync::sizes::{BUCKETS_PER_STRIPE, MAX_STRIPES};
use crate::sync::{AtomicU64, Ordering};
use crate::table::counters::Counters;
use crate::table::entries::Entries;
use crate::table::image::copy_on_write::{Changing, RunningSaves};
use crate::table::image::spare::Spare;
use crate::table::stripe::{self, AllLocked, Guard, Stripe};
use crate::word::bucket::Bucket;
use crate::word::geometry::{Geometry, Item};
use crate::word::layout::{Entry, Fingerprint, Layout, Shape, by_encoding};
use core::hint::select_unpredictable;

/// A concurrent multiset of items.
pub(crate) struct Table<E: Entries> {
    pub(crate) layout: E::Layout,
    pub(super) geometry: Geometry,
    pub(crate) words: Box<[AtomicU64]>,
    /// Their number is a power of two.
    pub(crate) stripes: Box<[Stripe]>,
    pub(crate) counters: Counters,
    /// The bits of a pair's bucket sum that choose the pair's stripe.
    stripe_mask: usize,
    /// The limit of the table's capacity.
    pub(crate) limit: LoadLimit,
    /// One, in a box: what threads write is not beside the fields that each operation reads. (One atomic is, the longest
    /// path of [`Counters`], which hardly ever changes. In a box too, it would make inserts in a batch up to 2% shorter
    /// by instructions, but lookups in a batch and single inserts up to 3% longer.)
    running_saves: Box<RunningSaves>,
    /// What its entries carry.
    pub(super) entries: E,
}

/// What came of [`add_with_spare`](Table::add_with_spare).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Addition {
    Added,
    /// Both buckets are full.
    NoRoom,
    /// A save is running, and the spare memory was not enough to copy a word for it. Nothing was added.
    NeedsSpare,
}

/// The number of stripes for this many buckets: a power of two.
fn stripes_for(buckets: usize) -> usize {
    let most = (buckets / BUCKETS_PER_STRIPE).clamp(1, MAX_STRIPES);
    1 << most.ilog2()
}

/// How many bytes a table of this many buckets requests from the allocator. The decode table, which all semi-sorted
/// tables share, is not included.
pub(crate) fn memory_for(buckets: usize) -> usize {
    let of_stripes = stripes_for(buckets) * size_of::<Stripe>();
    buckets * size_of::<AtomicU64>() + of_stripes + Counters::memory_for(buckets) + size_of::<RunningSaves>()
}

impl<E: Entries> Table<E> {
    /// An empty table of this shape. `None` if there is no memory for it.
    pub(crate) fn new(pages: Pages, shape: Shape, buckets: usize, entries: E) -> Option<Self> {
        let stripes = boxed_slice(stripes_for(buckets), Stripe::new)?;
        Some(Self {
            layout: E::layout(shape)?,
            geometry: Geometry::new(buckets),
            words: words_on(pages, buckets)?,
            stripe_mask: (stripes.len() - 1) * BUCKETS_PER_STRIPE,
            stripes,
            counters: Counters::new(buckets)?,
            limit: LoadLimit::NONE,
            running_saves: boxed(RunningSaves::new())?,
            entries,
        })
    }

    pub(crate) fn with_limit(self, limit: LoadLimit) -> Self {
        Self { limit, ..self }
    }

    /// The layout, for operations that may also be compiled for a known one.
    #[inline(always)]
    pub(crate) fn layout(&self) -> &E::Layout {
        &self.layout
    }

    #[inline(always)]
    pub(crate) fn item(&self, hash: u64) -> Item {
        self.geometry.item(self.layout(), hash)
    }

    #[inline(always)]
    pub(crate) fn item_with(&self, hash: u64, payload: u16) -> Item {
        self.item(hash).with(self.layout(), payload)
    }

    #[inline(always)]
    pub(crate) fn running_saves(&self) -> &RunningSaves {
        &self.running_saves
    }

    /// Whether a save is running. An insert asks this when it begins.
    #[inline(always)]
    pub(super) fn is_being_saved(&self) -> bool {
        self.running_saves().any()
    }

    /// Locks the stripe of the classes whose pair has this bucket sum, or uses the locks of `all`, to change at most so many
    /// words. The caller holds no other lock.
    #[inline(always)]
    pub(super) fn lock_to_change<'a>(
        &'a self,
        bucket_sum: usize,
        words: u64,
        all: Option<&'a AllLocked<'_>>,
    ) -> Changing<'a> {
        match all {
            Some(all) => Changing::with_all(self.running_saves(), self.stripe(bucket_sum), all),
            None => self.running_saves().lock_to_change(words, || self.stripe(bucket_sum).lock(&self.counters)),
        }
    }

    /// Copies the bucket's word for the saves that are running, if there are any (`table/image/copy_on_write.rs`). The
    /// caller has the lock by which a copy is about to be removed from the bucket, or moved into it, and with it the spare
    /// memory: `None` if no save was running when it took the lock.
    #[inline(always)]
    pub(super) fn copy_for_saves(&self, bucket: usize, spare: Option<&Spare>) {
        if let Some(spare) = spare {
            self.running_saves().copy_for_saves(bucket, &|| self.load(bucket), spare);
        }
    }

    /// The same for a thread that may hold no lock of a stripe: for an insert that finds room, and for a sweep
    /// (`table/expiring/sweep.rs`). `false` if it needs more spare memory than it has, if any.
    #[inline(always)]
    pub(super) fn try_copy_for_saves(&self, bucket: usize, spare: Option<&Spare>) -> bool {
        let saves = self.running_saves();
        !saves.any() || spare.is_some_and(|spare| saves.try_copy_for_saves(bucket, &|| self.load(bucket), spare))
    }

    /// How many copies of the item's class its buckets hold, except expired ones. Without the lock, it may count a copy
    /// that is being moved twice.
    pub(super) fn copies(&self, item: Item) -> usize {
        self.copies_at(self.entries.reading(), item)
    }

    /// [`copies`](Self::copies) at a reading of the clock.
    pub(super) fn copies_at(&self, reading: E::Reading, item: Item) -> usize {
        let fingerprint = self.layout.fingerprint_of(item.entry);
        let mut copies = self.live_copies_in(reading, self.load(item.first), fingerprint);
        if item.second != item.first {
            copies += self.live_copies_in(reading, self.load(item.second), fingerprint);
        }
        copies
    }

    /// How many copies with this fingerprint a bucket holds that are live at a reading of the clock.
    #[inline(always)]
    pub(super) fn live_copies_in(&self, reading: E::Reading, bucket: Bucket, fingerprint: Fingerprint) -> usize {
        if E::EXPIRE {
            bucket.count_with(self.layout, fingerprint, |payload| self.entries.is_live(reading, payload))
        } else {
            bucket.count(self.layout, fingerprint)
        }
    }

    /// How many copies of the item its buckets hold. Without the lock, it may count twice a copy that is being moved.
    #[inline(always)]
    pub(super) fn copies_of_item(&self, layout: impl Layout, item: Item) -> usize {
        let first = self.load(item.first);
        if item.first == item.second {
            return first.count_entry(layout, item.entry);
        }
        Bucket::count_entry_in_both(layout, [first, self.load(item.second)], item.entry)
    }

    /// How many items the table is made for; reported, not enforced.
    #[inline(never)]
    pub(crate) fn capacity(&self) -> usize {
        sizing::capacity_of(self.layout.shape(), self.geometry.buckets(), self.limit)
    }

    pub(super) fn slots_of(&self, item: Item) -> usize {
        usize::from(self.layout.lanes().slots) * if item.second == item.first { 1 } else { 2 }
    }

    /// Adds a copy of the item to the emptier of its buckets in one step, a further one if they hold some, without counting
    /// it. It reads each bucket once. Returns `false` if neither has room, or if another thread has changed the bucket. No save
    /// is running.
    ///
    /// It chooses the emptier bucket instead of the first one with room (Mitzenmacher's "power of two choices"). In a
    /// half-empty table, that costs a second cache line. It avoids relocations later. In all, inserts from empty to 95
    /// % take 8% less time semi-sorted and 16% less plain, in the L2 cache.
    #[inline(always)]
    pub(super) fn add(&self, layout: impl Layout, item: Item) -> bool {
        let (first, second) = (self.load(item.first), self.load(item.second));
        let (in_first, in_second) = (first.room(layout), second.room(layout));
        // The choice is as good as random: a branch on it would be mispredicted half of the time.
        let swap = in_second > in_first;
        let bucket = select_unpredictable(swap, item.second, item.first);
        let seen = select_unpredictable(swap, second, first);
        let Some(changed) = seen.add_to(layout, select_unpredictable(swap, in_second, in_first), item.entry) else {
            return false;
        };
        self.exchange(bucket, seen, changed).is_ok()
    }

    /// [`add`](Self::add) with retries: to the emptier bucket or, if that is full by then, to the other. Copies the word
    /// for the saves first if a save is running. The caller holds no lock, except perhaps those of `all`.
    #[inline(always)]
    pub(super) fn add_slow(&self, item: Item, all: Option<&AllLocked<'_>>) -> bool {
        let spare = all.and_then(|all| all.spare);
        match self.add_with_spare(item, spare) {
            Addition::Added => true,
            Addition::NoRoom => false,
            // It has enough for an attempt, so that was no reason.
            Addition::NeedsSpare if spare.is_some() => false,
            Addition::NeedsSpare => self.add_beside_save(item),
        }
    }

    /// [`add_slow`](Self::add_slow) by a thread that holds no lock, while a save is running.
    #[cold]
    #[inline(never)]
    fn add_beside_save(&self, item: Item) -> bool {
        let spare = Spare::default();
        loop {
            match self.add_with_spare(item, Some(&spare)) {
                Addition::Added => return true,
                Addition::NoRoom => return false,
                Addition::NeedsSpare => self.running_saves().fill(&spare, 1),
            }
        }
    }

    /// [`add_slow`](Self::add_slow) by a thread that holds the lock of the item's stripe, to change two words.
    #[inline(always)]
    pub(super) fn add_locked(&self, changing: &Changing<'_>, item: Item) -> bool {
        self.add_with_spare(item, changing.spare()) == Addition::Added
    }

    /// [`add_slow`](Self::add_slow) with this spare memory, under whatever lock the caller holds.
    #[inline(never)]
    fn add_with_spare(&self, item: Item, spare: Option<&Spare>) -> Addition {
        by_encoding!(&self.layout, layout => self.add_with_spare_by(layout, item, spare))
    }

    #[inline(always)]
    fn add_with_spare_by(&self, layout: impl Layout, item: Item, spare: Option<&Spare>) -> Addition {
        let [in_first, in_second] = [item.first, item.second].map(|bucket| self.load(bucket).room(layout));
        let swap = in_second > in_first;
        if !Bucket::is_room(layout, select_unpredictable(swap, in_second, in_first)) {
            return Addition::NoRoom;
        }
        let (emptier, other) = select_unpredictable(swap, (item.second, item.first), (item.first, item.second));
        for bucket in [emptier, other] {
            if !self.try_copy_for_saves(bucket, spare) {
                return Addition::NeedsSpare;
            }
            if self.put(layout, bucket, item.entry) {
                return Addition::Added;
            }
        }
        Addition::NoRoom
    }

    /// Adds a copy of the entry to this bucket, a further one if it holds some. Returns `false` if it is full. Copies nothing
    /// for saves and counts nothing.
    #[inline]
    pub(crate) fn put(&self, layout: impl Layout, bucket: usize, entry: Entry) -> bool {
        self.change(bucket, self.load(bucket), |seen| seen.add(layout, entry))
    }

    /// Gives a copy of an entry in the bucket, which was seen to hold one, another payload, after the bump that readers
    /// need. The guard is that of the copy's stripe.
    ///
    /// `false` if there is none. The caller has excluded that: while it holds the lock, no other thread can take the
    /// copy.
    pub(super) fn replace_entry(&self, guard: &Guard<'_>, bucket: usize, seen: Bucket, old: Entry, new: Entry) -> bool {
        guard.bump();
        self.change(bucket, seen, |seen| seen.replace(self.layout, old, new))
    }

    /// Changes a bucket in one step. `false` if the bucket's new content does not allow the change.
    #[inline(always)]
    pub(super) fn change(&self, bucket: usize, mut seen: Bucket, changed: impl Fn(Bucket) -> Option<Bucket>) -> bool {
        while let Some(changed) = changed(seen) {
            match self.exchange(bucket, seen, changed) {
                Ok(()) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Changes a bucket from `seen` to `changed` in one step. If it has changed meanwhile, returns its present content.
    #[inline(always)]
    pub(super) fn exchange(&self, bucket: usize, seen: Bucket, changed: Bucket) -> Result<(), Bucket> {
        let word = at(&self.words, bucket);
        // Release: a thread that sees this copy sees what its inserter saw, and one that sees a copy gone sees the bump
        // before it. SeqCst: see `table/stripe.rs`, *Across keys*. Relaxed on failure: the word that it finds only
        // determines what to try next.
        match word.compare_exchange_weak(seen.0, changed.0, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(now) => Err(Bucket(now)),
        }
    }

    #[inline(always)]
    pub(crate) fn load(&self, bucket: usize) -> Bucket {
        load(&self.words, bucket)
    }

    /// What the bucket holds, without the entries that have expired at a reading of the table's clock.
    #[inline(always)]
    pub(super) fn load_live(&self, reading: E::Reading, bucket: usize) -> Bucket {
        let seen = self.load(bucket);
        if !self.entries.may_hold_expired(reading) {
            return seen;
        }
        let is_expired = |payload| !self.entries.is_live(reading, payload);
        seen.without_all(self.layout, seen.lanes_with(self.layout, is_expired))
    }

    #[inline(always)]
    pub(super) fn stripe(&self, bucket_sum: usize) -> &Stripe {
        self.stripes().get(bucket_sum)
    }

    #[inline(always)]
    pub(super) fn stripes(&self) -> Stripes<'_> {
        Stripes { all: &self.stripes, mask: self.stripe_mask }
    }

    /// Calls `work` with the locks of all stripes. It changes no words that are to be copied for saves.
    pub(crate) fn under_all_locks<R>(&self, work: impl FnOnce(&AllLocked<'_>) -> R) -> R {
        stripe::under_all_locks(&self.stripes, &self.counters, None, work)
    }

    /// The same for `work` that changes words: with the thread's spare memory. `None` if that is too little for so many.
    pub(super) fn under_all_locks_with<R>(
        &self,
        spare: &Spare,
        words: u64,
        work: impl FnOnce(&AllLocked<'_>) -> R,
    ) -> Option<R> {
        stripe::under_all_locks(&self.stripes, &self.counters, Some(spare), |all| {
            self.running_saves().has_enough(spare, words).then(|| work(all))
        })
    }

    /// Announces, in a table with payloads, that a copy is about to be added.
    #[inline(always)]
    pub(super) fn bump_to_add(&self, guard: &Guard<'_>) {
        if E::HAVE_PAYLOAD {
            guard.bump();
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Stripes<'a> {
    all: &'a [Stripe],
    mask: usize,
}

impl<'a> Stripes<'a> {
    /// The number of the stripe of the classes whose pair has this bucket sum.
    pub(super) fn number(self, bucket_sum: usize) -> usize {
        (bucket_sum & self.mask) / BUCKETS_PER_STRIPE
    }

    /// That stripe. The masked bucket sum is its offset in bytes: [`BUCKETS_PER_STRIPE`] is the size of a stripe.
    #[inline(always)]
    pub(super) fn get(self, bucket_sum: usize) -> &'a Stripe {
        at_step::<BUCKETS_PER_STRIPE, _>(self.all, bucket_sum & self.mask)
    }
}

#[inline(always)]
pub(crate) fn load(words: &[AtomicU64], bucket: usize) -> Bucket {
    // Acquire: a thread that sees a copy gone sees the bump that announced it, and a thread that sees a copy sees
    // what its inserter saw. SeqCst: see `table/stripe.rs`, *Across keys*.
    Bucket(at(words, bucket).load(Ordering::SeqCst))
}
