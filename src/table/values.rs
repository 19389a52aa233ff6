//! CONCURRENT: what only a table with payloads does: lookups of values, and their replacement. The argument for both stands in
//! `table/stripe.rs`, *Values*.

use core::hint::select_unpredictable;

use crate::error::insert::InsertError;
use crate::plan::batch::BLOCK;
use crate::sync::AtomicU64;
use crate::table::relocate::{Effort, Purpose};
use crate::table::stripe::{Guard, Stripe};
use crate::table::words::{Stripes, Table, TakeFaults, look};
use crate::verify::fault::{self, Fault};
use crate::word::bucket::{Bucket, BucketOps};
use crate::word::geometry::{Geometry, Index, Item, Items};
use crate::word::layout::{Fingerprint, Layout};
use crate::word::values::Values;

impl<L: Layout, G: Geometry> Table<L, G> {
    /// The item of a key with this hash, with a payload.
    #[inline(always)]
    pub(super) fn item_with(&self, hash: u64, payload: u16) -> Item {
        self.item(hash).with(self.layout, payload)
    }

    /// The payloads of all copies of the item's class. Lock-free.
    #[cfg(ccf_model)]
    pub(crate) fn values(&self, item: Item) -> Values {
        self.values_or_again(item, move || item)
    }

    /// The payloads of all copies of the item's class, which `again` returns too. Lock-free.
    #[inline(always)]
    pub(super) fn values_or_again(&self, item: Item, again: impl FnOnce() -> Item) -> Values {
        let words = &*self.words;
        let (first, second, changes) = look_twice(words, self.stripe(item.sum), item.first, item.second);
        if changes == 0 { self.layout.values(first, second, self.fingerprint(item)) } else { self.values_anew(again) }
    }

    /// `values` where the first look was disturbed.
    #[cold]
    #[inline(never)]
    fn values_anew(&self, item: impl FnOnce() -> Item) -> Values {
        let item = item();
        loop {
            self.counters.lookup_retried();
            let (first, second, changes) = look_twice(&self.words, self.stripe(item.sum), item.first, item.second);
            if changes == 0 {
                return self.layout.values(first, second, self.fingerprint(item));
            }
        }
    }

    /// `values` for each of the first `len` items of a block, into `found`, which is empty. Asks for the buckets of the items to
    /// come, if there are any.
    ///
    /// As in [`contains_block`](Self::contains_block), all words are read before any is compared.
    #[inline(always)]
    pub(crate) fn values_block(
        &self,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        found: &mut [Values; BLOCK],
    ) {
        let (words, stripes) = (&*self.words, self.stripes());
        let (mut firsts, mut seconds) = ([0; BLOCK], [0; BLOCK]);
        let mut changes = 0;
        for nth in 0..BLOCK {
            if let Some(coming) = coming {
                self.prefetch(coming.get(nth));
            }
            changes |= look_twice_at_nth(words, stripes, items, nth, &mut firsts, &mut seconds);
        }
        let mut patterns = [0; BLOCK];
        for (pattern, &fingerprint) in patterns.iter_mut().zip(&items.entries) {
            *pattern = self.layout.pattern(Fingerprint(fingerprint));
        }
        let mut matching = [false; BLOCK];
        for nth in 0..BLOCK {
            matching[nth] = self.layout.either_matches(Bucket(firsts[nth]), Bucket(seconds[nth]), patterns[nth]);
        }
        // One bit for each, as in `contains_block`.
        let mut matches = 0;
        for (nth, &found) in matching.iter().enumerate() {
            matches |= u32::from(found) << nth;
        }
        matches &= ((1u64 << len) - 1) as u32;
        while matches != 0 {
            let nth = matches.trailing_zeros() as usize % BLOCK;
            matches &= matches - 1;
            found[nth] = self.layout.values(Bucket(firsts[nth]), Bucket(seconds[nth]), Fingerprint(items.entries[nth]));
        }
        if changes != 0 {
            for (nth, values) in found.iter_mut().enumerate().take(len) {
                *values = self.values_anew(|| items.get(nth));
            }
        }
    }

    /// Adds a copy of the item unless there is one of its class. Returns the payloads that were found; none if it was added.
    pub(crate) fn insert_if_absent_telling(&self, item: Item) -> Result<Values, InsertError> {
        // Spares the lock where a lookup is enough. (Not in the model without the lock, where it would hide the bug.)
        if !fault::injected(Fault::InsertIfAbsentWithoutLock) {
            let found = self.values_or_again(item, move || item);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let mut effort = Effort::default();
        loop {
            {
                let _guard = self.stripe(item.sum).lock_unless(Fault::InsertIfAbsentWithoutLock, &self.counters);
                let found = self.values_locked(item);
                if !found.is_empty() {
                    return Ok(found);
                }
                if self.put_in_either::<true>(item) {
                    self.counters.add_len(1);
                    return Ok(Values::EMPTY);
                }
            }
            if effort.is_enough() {
                let found = self.insert_undisturbed(item, Purpose::InsertIfAbsent)?;
                self.counters.add_len(i64::from(found.is_none()));
                return Ok(found.unwrap_or(Values::EMPTY));
            }
            self.make_room(item, Purpose::InsertIfAbsent, &mut effort)?;
        }
    }

    /// The payloads of all copies of the item's class, for who holds the lock of its stripe: nobody takes any out.
    pub(super) fn values_locked(&self, item: Item) -> Values {
        loop {
            let first = self.look(item.first);
            let second = self.look(item.second);
            if self.look(item.first) == first || fault::injected(Fault::ValuesLookOnce) {
                return self.layout.values(first, second, self.fingerprint(item));
            }
        }
    }

    /// Gives a copy of one item the payload of the other, which is of the same class; `false` if there is none.
    #[inline(always)]
    pub(crate) fn replace(&self, old: Item, new: Item) -> bool {
        // As in `remove_hash`.
        self.prefetch(old);
        let Some(guard) = self.stripe(old.sum).try_lock_unless(Fault::ReplaceWithoutLock) else {
            return self.replace_when_free(old, new);
        };
        // As in `remove_or_again`.
        let (first, second) = (self.look(old.first), self.look(old.second));
        let (in_first, copy) = self.layout.place(first, second, old.entry);
        if !copy.exists() {
            return false;
        }
        let bucket = select_unpredictable(in_first, old.first, old.second);
        let changed = self.layout.replace_candidate(copy, old.entry, new.entry);
        if !self.layout.confirms(copy, self.fingerprint(old))
            || self.is_being_saved()
            || fault::injected(Fault::ReplaceTakesFirst)
            || fault::injected(Fault::ReplaceAddsFirst)
            || !self.take_at_once(&guard, bucket, copy.word, changed, TakeFaults::REPLACE)
        {
            return self.replace_locked(guard, old, new);
        }
        true
    }

    /// `replace` where the lock was not free.
    #[cold]
    #[inline(never)]
    fn replace_when_free(&self, old: Item, new: Item) -> bool {
        let guard = self.stripe(old.sum).lock_after_wait(&self.counters);
        self.replace_locked(guard, old, new)
    }

    /// `replace` under the lock where it takes more than one step.
    #[cold]
    #[inline(never)]
    fn replace_locked(&self, guard: Guard<'_>, old: Item, new: Item) -> bool {
        [old.first, old.second].into_iter().any(|bucket| {
            let seen = self.look(bucket);
            if !self.layout.holds_entry(seen, old.entry) {
                return false;
            }
            self.keep(bucket, Fault::ReplaceKeepsNothing);
            self.bump_and_replace(&guard, bucket, seen, old.entry, new.entry)
        })
    }
}

/// One round of a lookup of values: both words, and 0 if they are what was there at one moment.
///
/// Reads the version, then the words five times by turns, then the version again.
#[inline(always)]
fn look_twice(words: &[AtomicU64], stripe: &Stripe, first: usize, second: usize) -> (Bucket, Bucket, u64) {
    let version = stripe.version();
    let word = look(words, first);
    let other = look(words, second);
    let mut changes = 0;
    if !fault::injected(Fault::ValuesLookOnce) {
        changes |= look(words, first).0 ^ word.0;
        if !fault::injected(Fault::ValuesLookAgainOnce) {
            changes |= look(words, second).0 ^ other.0;
            changes |= look(words, first).0 ^ word.0;
        }
    }
    if !fault::injected(Fault::LookupWithoutVersion) {
        changes |= stripe.changes_since(version);
    }
    (word, other, changes)
}

/// [`look_twice`] for one item of a block; returns its changes.
#[inline(always)]
fn look_twice_at_nth<I: Index>(
    words: &[AtomicU64],
    stripes: Stripes<'_>,
    items: &Items<I, BLOCK>,
    nth: usize,
    firsts: &mut [u64; BLOCK],
    seconds: &mut [u64; BLOCK],
) -> u64 {
    let stripe = stripes.get(items.sums[nth].get());
    let (first, second, changes) = look_twice(words, stripe, items.firsts[nth].get(), items.seconds[nth].get());
    (firsts[nth], seconds[nth]) = (first.0, second.0);
    changes
}
