//! CONCURRENT: merging: a table adds the copies of another table of the same layout: all of them (the sum, `absorb` of
//! a filter), or those that it lacks (the union, `unite` of a filter). What is named *absorb* here and above is for
//! both; a [`Merge`] says which. A growing table has its own `absorb`, in `growth/image.rs`.
//!
//! The place of a copy in the other table determines its class: the fingerprint is in the slot, and the bucket is one
//! of its pair. So the copy can be added here without its key.
//!
//! # Why the sum is exact while both are in use
//! The other table is read as a point-in-time image (`table/image/copy_on_write.rs`). Each copy of that moment is in the
//! image exactly once, wherever it is relocated meanwhile.
//!
//! Here, each copy is added as an insert of its key would add it. In a filter, one exchange may add several copies to a
//! bucket. That is equivalent to the same number of inserts, one right after the other: an insert is one exchange of
//! one word that removes no copy (`table/stripe.rs`), and no thread can observe that nothing came in between. If a
//! save of this table is running, the word is copied for it first, as for any insert. Where slots have payloads, each copy
//! is added by an insert of its own, under the lock of its stripe.
//!
//! # The union
//! Each copy of the image is added as `insert_if_absent` would add it, under the lock of its class's stripe: unless a copy
//! of its class is there or, where slots have values, of the same class and value. So the union needs no argument of its
//! own. An entry that expires is renewed, as by `insert_or_renew`.
//!
//! So, while nothing else changes, each class (with its value) is in afterwards if it was in either table, and an entry's
//! end is the later one. Where each is in at most once, that does not depend on the order of unions, and a second one
//! changes nothing.
//!
//! A table can absorb itself, and two tables can absorb each other: no lock is held from one step to the next.

use crate::error::insert::{ExpiringInsertError, InsertError};
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::entries::{Entries, Expiry, Nothing, Value};
use crate::table::expiring::clock::{ClockState, Until};
use crate::table::image::merge::{Merge, MergeError, MergeResult};
use crate::table::image::read::TableImage;
use crate::table::image::spare::Spare;
use crate::table::table::Table;
use crate::word::bucket::Bucket;
use crate::word::geometry::Item;
use crate::word::layout::{Entry, Layout};
use crate::word::tick::Tick;

/// Copies that found no room in the bucket that they have in the other table. Their other buckets are being
/// prefetched.
struct Rest {
    items: [Item; Self::MOST],
    len: usize,
}

impl Rest {
    const MOST: usize = 32;
    const NO_ITEM: Item = Item { entry: Entry(0), first: 0, second: 0, bucket_sum: 0 };
}

/// Takes in a chunk, which begins at this bucket. It counts the copies that it has added, even if it stops.
type Each<'a> = dyn FnMut(usize, &[u64], &mut u64) -> Result<(), MergeError> + 'a;

/// Reads an image, a chunk at a time (`TableImage::read`), until `each` stops. Both kinds of tables merge by this.
pub(crate) fn read(image: &TableImage<'_>, each: &mut Each<'_>) -> MergeResult {
    let mut copies = 0;
    let result = image.read(|start, words| each(start, words, &mut copies));
    MergeResult { copies, stopped: result.err() }
}

/// Without a clock: what is here is for entries that do not expire.
impl<E: Entries<Reading = ()>> Table<E> {
    /// The union, where entries do not expire: adds each copy of the image unless there is an equal one, and counts it.
    pub(crate) fn unite(&self, image: &TableImage<'_>) -> MergeResult {
        read(image, &mut |start, words, copies| {
            // While the items of one word are looked for, the buckets of a later word's are on their way.
            const AHEAD: usize = 4;
            for (nth, &word) in words.iter().enumerate() {
                if let Some(&next) = words.get(nth + AHEAD) {
                    let next = Bucket(next).entries(self.layout);
                    next.for_each(|entry| self.prefetch(self.item_in(start + nth + AHEAD, entry)));
                }
                for entry in Bucket(word).entries(self.layout) {
                    let attempt = self.insert_item_unless_equal(self.item_in(start + nth, entry))?;
                    *copies += u64::from(attempt == Attempt::Added);
                }
            }
            Ok(())
        })
    }
}

impl<E: Entries> Table<E> {
    /// Calls `each` with the item of each copy in a chunk.
    fn each_item(
        &self,
        start: usize,
        words: &[u64],
        mut each: impl FnMut(Item) -> Result<(), MergeError>,
    ) -> Result<(), MergeError> {
        (start..).zip(words).try_for_each(|(bucket, &word)| {
            Bucket(word).entries(self.layout).try_for_each(|entry| each(self.item_in(bucket, entry)))
        })
    }

    /// The item of a copy that is in this bucket of the other table. Its buckets have the same numbers here.
    fn item_in(&self, bucket: usize, entry: Entry) -> Item {
        self.geometry.item_in(self.layout, bucket, entry)
    }
}

impl Table<Value> {
    /// Adds the pairs of the image, all or those that this table lacks.
    pub(crate) fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> MergeResult {
        match merge {
            Merge::Sum => self.add_all(image),
            Merge::Union => self.unite(image),
        }
    }

    /// The sum: adds a copy of each pair of the image, a further one if there are some, under the lock of its stripe, and
    /// counts it.
    fn add_all(&self, image: &TableImage<'_>) -> MergeResult {
        read(image, &mut |start, words, copies| {
            self.each_item(start, words, |item| {
                self.insert_value(self.layout(), item)?;
                self.counters.add_len(1);
                *copies += 1;
                Ok(())
            })
        })
    }
}

impl Table<Expiry> {
    /// Merges a table whose entries expire: the entries that are live by both clocks. The other table has the same
    /// resolution, and its clock is not ahead.
    ///
    /// An entry whose tick this table has evicted cannot be added. It is counted, and the others are added.
    pub(crate) fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> MergeResult {
        let clock = self.clock();
        let if_present = match merge {
            Merge::Sum => IfPresent::Add,
            Merge::Union => IfPresent::Extend,
        };
        let (mut rejected, mut last_evicted) = (0, Tick::new(0));
        let absorbed = self.read_live(image, &mut |class, tick, ticks| {
            if clock.now().is_none_or(|now| now.saturating_sub(tick) >= ticks) {
                return Ok(false);
            }
            match self.add_until(self.layout(), class, &Until::Since { tick, ticks }, if_present) {
                Err(ExpiringInsertError::Evicted { up_to, .. }) => {
                    rejected += 1;
                    last_evicted = last_evicted.max(up_to);
                    Ok(false)
                }
                added => Ok(added?),
            }
        });
        match absorbed {
            MergeResult { copies, stopped: None } if rejected > 0 => {
                MergeResult { copies, stopped: Some(MergeError::Evicted { rejected, up_to: last_evicted }) }
            }
            absorbed => absorbed,
        }
    }

    /// The union of filters of recent keys: adds each live entry of the image that is within this window, until the tick that
    /// `expiry_of` returns for the ticks that it has to live there. No keys are counted for it (`table/expiring/recent.rs`).
    pub(crate) fn unite_recent(&self, image: &TableImage<'_>, expiry_of: &dyn Fn(u64) -> Option<u64>) -> MergeResult {
        let clock = self.clock();
        self.read_live(image, &mut |class, _, ticks| {
            let Some(expiry) = expiry_of(ticks) else { return Ok(false) };
            loop {
                match self.add_until(self.layout(), class, &Until::Tick(expiry), IfPresent::Extend) {
                    Ok(added) => return Ok(added),
                    // The clock is late: that tick has come.
                    Err(ExpiringInsertError::LifetimeTooLong { .. }) => {
                        self.move_on(expiry - clock.longest(), true);
                    }
                    // The table is full, and this one would be the first to leave. It counts as evicted.
                    Err(_) => return Ok(false),
                }
            }
        })
    }

    /// Reads an image, and passes the class of each live entry to `each`: with the present tick of the other clock's caller,
    /// and with the number of ticks after it at which the entry expires. It returns whether it has added a copy.
    fn read_live(
        &self,
        image: &TableImage<'_>,
        each: &mut dyn FnMut(Item, u64, u64) -> Result<bool, MergeError>,
    ) -> MergeResult {
        let ring = self.clock().ring;
        let Some(state @ ClockState { now: Some(tick), reading, .. }) = image.clock_state() else {
            return MergeResult { copies: 0, stopped: None }; // without a tick there are no entries
        };
        read(image, &mut |start, words, copies| {
            self.each_item(start, words, |item| {
                let place = self.layout.payload_of(item.entry);
                if ring.is_live(reading, place) {
                    // Counted from the other clock's tick, so nothing here can be beyond the largest tick.
                    let ticks = state.ticks_until(ring, place);
                    *copies += u64::from(each(item.with(self.layout, 0), tick, ticks)?);
                }
                Ok(())
            })
        })
    }
}

impl Table<Nothing> {
    /// Adds the copies of the image, all or those that this table lacks. They come in the order of the buckets.
    pub(crate) fn absorb(&self, image: &TableImage<'_>, merge: Merge) -> MergeResult {
        match merge {
            Merge::Sum => read(image, &mut |start, words, copies| Ok(self.absorb_words(start, words, copies)?)),
            Merge::Union => self.unite(image),
        }
    }

    /// The sum, for a chunk. Counts what it adds, even if it fails.
    fn absorb_words(&self, start: usize, words: &[u64], copies: &mut u64) -> Result<(), InsertError> {
        let mut added = 0;
        let result = self.absorb_words_uncounted(start, words, &mut added);
        self.counters.add_len(added as i64);
        *copies += added as u64;
        result.map_err(|error| error.with_uncounted(added))
    }

    /// [`absorb_words`](Self::absorb_words), which counts nothing. First adds what fits where it is in the other table. The
    /// rest comes after, 32 at a time.
    fn absorb_words_uncounted(&self, start: usize, words: &[u64], added: &mut usize) -> Result<(), InsertError> {
        let mut rest = Rest { items: [Rest::NO_ITEM; Rest::MOST], len: 0 };
        for (bucket, &word) in (start..).zip(words) {
            let here = self.put_all(bucket, Bucket(word));
            *added += here;
            for entry in Bucket(word).entries(self.layout).skip(here) {
                if rest.len == Rest::MOST {
                    self.insert_rest(&mut rest, added)?;
                }
                let item = self.item_in(bucket, entry);
                self.prefetch(item);
                rest.items[rest.len] = item;
                rest.len += 1;
            }
        }
        self.insert_rest(&mut rest, added)
    }

    /// Adds to the bucket, in one step, as many of these copies as fit, beginning with the first; returns how many.
    fn put_all(&self, bucket: usize, copies: Bucket) -> usize {
        if copies == Bucket::default() {
            return 0;
        }
        let (spare, mut seen) = (Spare::default(), self.load(bucket));
        loop {
            let (changed, added) = seen.add_all(self.layout, copies);
            if added == 0 {
                return 0;
            }
            while !self.try_copy_for_saves(bucket, Some(&spare)) {
                self.running_saves().fill(&spare, 1);
            }
            match self.exchange(bucket, seen, changed) {
                Ok(()) => return added,
                Err(now) => seen = now,
            }
        }
    }

    /// Adds each of these copies to either of its buckets, a further one if there are some, by relocations if need be. Adds to
    /// `added` how many it has added, even if it fails, and leaves it to the caller to count them.
    ///
    /// First come the copies for which there is room. For the others, the buckets that a search examines next are
    /// prefetched: a relocation mostly waits for memory. (One could choose, among the copies of a full bucket, one
    /// whose other bucket has room. That saves a tenth of the relocations and takes longer.)
    fn insert_rest(&self, rest: &mut Rest, added: &mut usize) -> Result<(), InsertError> {
        let mut without_room = 0;
        for nth in 0..core::mem::take(&mut rest.len) {
            let item = rest.items[nth];
            if self.add_slow(item, None) {
                *added += 1;
                continue;
            }
            for bucket in [item.first, item.second] {
                for entry in self.load(bucket).entries(self.layout) {
                    self.prefetch(self.item_in(bucket, entry));
                }
            }
            rest.items[without_room] = item;
            without_room += 1;
        }
        for &item in &rest.items[..without_room] {
            self.insert_item_slow(item)?;
            *added += 1;
        }
        Ok(())
    }
}
