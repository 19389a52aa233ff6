//! CONCURRENT: what only a table with payloads does, that is, that of a maplet: lookups of values, and their replacement.
//!
//! # Items
//! In a maplet each copy of a class also has a value, its *payload*. A class with a value is an *item*, and the table is a
//! multiset of items. **The class knows nothing of the value.** It alone decides bucket, alternate bucket and stripe. So the rules
//! and the proofs of `table/stripe.rs` hold here too: what they say of copies, read of items. Two operations are new.
//!
//! # `replace`
//! It changes the value in its word by one compare-exchange, under the lock of the class's stripe and after a bump. For the rules
//! it is a store that takes one item out and adds another. So at every moment there is the one or the other, and never both.
//!
//! It takes the lock for the sake of relocations. One that has filled the new slot and not yet cleared the old one would leave the
//! old value behind.
//!
//! # All values of a key
//! A lookup reads the version, then the first word `F` and the second word `S`, and `F` again. It reads the version again. If that
//! is still the same, and both looks at `F` saw the same, then it has the answer, provided that the two words have at most one item
//! of the class. If they have several, it looks longer, at `F S F S F` between its two looks at the version. All `F` and both `S`
//! must be equal. The answer is the set of the values that the words have. If anything differs, it looks again, and longer. (In a
//! batch each lookup looks so from the first.)
//!
//! *The answer is what the key had at one moment.* Let `n` be the version, and number the critical sections of the stripe by their
//! bumps, as the proof for `contains` does.
//!
//! 1. What sections before `n` took was gone before the first look. What a section after `n` took was still there at the last
//!    look at its word: else that look would have shown the section's bump, and the version would not be `n`.
//! 2. So only section `n` takes anything between two of these looks, by one store, from one word. It found what it takes before it
//!    bumped, and nobody else takes that. So until it is taken it is there, at all looks that come before. (`clear` takes from all
//!    words, also by one store from each. Its documentation says what that leads to.)
//! 3. *Several items.* The looks at `F` leave two spans between them, and the store falls into one of these at most. In the other
//!    one, `F` only gained. It was equal at both ends, so it did not change at all. In that span `S` was read. At that moment the key
//!    had the values in `F` and in `S`. Both looks at `S` saw the same, so it does not matter which of the spans it is.
//! 4. *One item, or none.* If section `n` takes nothing from `F` between the two looks at it, then `F` did not change, as in 3. So at
//!    the look at `S` the key had what was found. If it does take an item from `F` there, that is the one item which both looks saw. Then `S` had
//!    none when it was read, and until then it had only gained. So at the first look at `F` the key had that item and no other.
//!
//! An item that is relocated is in both words for a moment. The answer is a set, so that makes no difference.
//!
//! *Why not fewer looks.* With one look at each word: a thread adds `x` to `F` after that was read, and then `y` to `S` before that is
//! read. The answer has `y` without `x`. With `F S F` where there are several: section `n` is a removal of `x` from `F` that has
//! bumped and not yet taken. The lookup reads `n`, and `x` in `F`. Then `x` is taken, `y` is added to `S`, and `S` is read. Then `z`
//! is added to `S`, and `x` to `F` again. The lookup finds `F` as it was and answers `x` and `y`. At no moment the key had these
//! without `z`. `tests/stepped/tests/schedules/values.rs` has both.
//!
//! *Why `replace` bumps.* Else it could take from `F` in each of the spans, and put back what it took.
//!
//! A lookup looks again only after a bump or another change of one of its two words, that is, after a step of some writer's. So it
//! is lock-free, as `contains` is.
//!
//! # Linearizability
//! Over the multiset of items, and for all keys together as in `table/stripe.rs`:
//!
//! | operation | takes effect |
//! |---|---|
//! | `insert`, `remove`, `count` of an item | as there |
//! | `contains` | as there: whether there is any item of the class |
//! | `values` | at the moment that steps 3 and 4 speak of |
//! | `replace` | *true*: at its compare-exchange. *false*: at its first read, as `remove` |
//! | `insert_if_absent` | where it tells values: as `values`; or, under the lock, where nothing is taken, at its look at the second word, which comes between two equal looks at the first. Where it adds: as there |

use core::hint::select_unpredictable;

use crate::error::insert::InsertError;
use crate::plan::batch::BLOCK;
use crate::sync::AtomicU64;
use crate::table::relocate::{Effort, Purpose};
use crate::table::stripe::{Guard, Stripe};
use crate::table::words::{Table, TakeFaults, look};
use crate::verify::fault::{self, Fault};
use crate::word::bucket::{Bucket, BucketOps, OnlyCandidate};
use crate::word::geometry::{Geometry, Item, Items};
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
        // Before the version, for no load comes before it that stands after it.
        let words = &*self.words;
        let Some((first, second)) = look_thrice(words, self.stripe(item.sum), item.first, item.second) else {
            return self.values_anew(again);
        };
        // The item has no payload.
        let fingerprint = Fingerprint(item.entry.0);
        let OnlyCandidate { candidate, several } =
            self.layout.only_candidate(first, second, self.layout.pattern(fingerprint));
        if !candidate.exists() {
            return Values::EMPTY;
        }
        if several != 0 { self.values_of_several(again) } else { self.layout.value_of(candidate, fingerprint) }
    }

    /// `values` where the first look was disturbed: counts that, and looks again.
    #[cold]
    #[inline(never)]
    fn values_anew(&self, item: impl FnOnce() -> Item) -> Values {
        self.counters.lookup_retried();
        self.values_of_several(item)
    }

    /// `values` where the first look has found several candidates.
    #[inline(never)]
    fn values_of_several(&self, item: impl FnOnce() -> Item) -> Values {
        let item = item();
        loop {
            let looked = look_five_times(&self.words, self.stripe(item.sum), item.first, item.second);
            if let Some((first, second)) = looked {
                return self.layout.values(first, second, self.fingerprint(item));
            }
            self.counters.lookup_retried();
        }
    }

    /// `values` for each of the first `len` items of a block, into `found`, which is empty. Asks for the buckets of the items to
    /// come, if there are any.
    ///
    /// As in [`contains_block`](Self::contains_block), all words are read before any is compared.
    #[inline(always)]
    pub(super) fn values_block(
        &self,
        items: &Items<G::Index, BLOCK>,
        len: usize,
        coming: Option<&Items<G::Index, BLOCK>>,
        found: &mut [Values; BLOCK],
    ) {
        // Read once: after a load of a version, the compiler would read them again.
        let (words, stripes) = (&*self.words, self.stripes());
        let (mut firsts, mut seconds) = ([Bucket(0); BLOCK], [Bucket(0); BLOCK]);
        let mut disturbed = false;
        for nth in 0..BLOCK {
            if let Some(coming) = coming {
                self.prefetch(coming.get(nth));
            }
            let item = items.get(nth);
            match look_five_times(words, stripes.get(item.sum), item.first, item.second) {
                Some(seen) => (firsts[nth], seconds[nth]) = seen,
                None => disturbed = true,
            }
        }
        let mut patterns = [0; BLOCK];
        for (pattern, &fingerprint) in patterns.iter_mut().zip(&items.entries) {
            *pattern = self.layout.pattern(Fingerprint(fingerprint));
        }
        let (mut in_firsts, mut in_seconds) = ([0; BLOCK], [0; BLOCK]);
        let mut exist = [false; BLOCK];
        for nth in 0..BLOCK {
            [in_firsts[nth], in_seconds[nth]] = self.layout.all_candidates(firsts[nth], seconds[nth], patterns[nth]);
            exist[nth] = in_firsts[nth] | in_seconds[nth] != 0;
        }
        // One bit for each, as in `contains_block`.
        let mut matches = 0;
        for (nth, &exists) in exist.iter().enumerate() {
            matches |= u32::from(exists) << nth;
        }
        matches &= ((1u64 << len) - 1) as u32;
        while matches != 0 {
            let nth = matches.trailing_zeros() as usize % BLOCK;
            matches &= matches - 1;
            let fingerprint = Fingerprint(items.entries[nth]);
            found[nth] = self.layout.values_of(firsts[nth], seconds[nth], in_firsts[nth], in_seconds[nth], fingerprint);
        }
        if disturbed {
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

/// One round of a lookup of values: both words, or `None` if it was disturbed. Where they have at most one item of the class, that
/// is what there was at one moment.
#[inline(always)]
fn look_thrice(words: &[AtomicU64], stripe: &Stripe, first: usize, second: usize) -> Option<(Bucket, Bucket)> {
    let version = stripe.version();
    let seen = (look(words, first), look(words, second));
    let same = fault::injected(Fault::ValuesLookOnce) || look(words, first) == seen.0;
    let still = fault::injected(Fault::LookupWithoutVersion) || same && stripe.is_still(version);
    (same && still).then_some(seen)
}

/// One round of a lookup of values: both words as they were at one moment, or `None` if it was disturbed.
#[inline(always)]
fn look_five_times(words: &[AtomicU64], stripe: &Stripe, first: usize, second: usize) -> Option<(Bucket, Bucket)> {
    let version = stripe.version();
    let seen = (look(words, first), look(words, second));
    let once = fault::injected(Fault::ValuesLookOnce);
    let again = once || look(words, first) == seen.0;
    let twice = once
        || fault::injected(Fault::ValuesLookAgainOnce)
        || again && look(words, second) == seen.1 && look(words, first) == seen.0;
    let still = fault::injected(Fault::LookupWithoutVersion) || again && twice && stripe.is_still(version);
    (again && twice && still).then_some(seen)
}
