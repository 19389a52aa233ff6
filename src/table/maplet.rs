//! CONCURRENT: what only a table with payloads does, that is, the table of a maplet: it adds, finds and replaces
//! values.
//!
//! # Items
//! In a maplet each copy of a class also has a value, its *payload*. A class with a value is an *item*, and the table
//! is a multiset of items. **The class does not depend on the value.** The class alone decides bucket, alternate
//! bucket and stripe. So the protocol is that of `table/stripe.rs`, with "item" for "copy", and one rule more:
//!
//! **In a maplet every store is made under the lock of its class's stripe, and is preceded by a bump of its own.**
//! This includes stores that add: an insert's, and the one by which a relocation fills the new slot. So between two
//! bumps of a stripe at most one store changes anything of its classes, in one word. An insert adds, a removal takes,
//! a relocation adds and then takes, and `replace` changes the value in its place by one compare-exchange. (`clear`
//! takes from all words, by one store from each.)
//!
//! # All values of a key
//! A lookup reads the version, the first word, the second word, and the version again, as `contains` does. If the
//! version was `n` both times, the answer is the set of the values of the class in both words. If not, it looks
//! again.
//!
//! *The answer is what the key had at one moment.* Number the bumps of the stripe, and give each store the number of
//! the bump before it.
//!
//! 1. The lookup sees all stores before the one of number `n`. It read `n`. All that comes before that bump, on the
//!    bumping thread or by the lock, comes with it.
//! 2. It sees no store after the one of number `n`. A thread that reads a word that has such a store in it also reads
//!    the bump before that store, and the second version would not be `n`.
//! 3. What is left is the one store of number `n`. It is in one of the two words, and the look at that word sees it
//!    or not. So both words together are the state after it, or the state before. Either was the state at the look at
//!    that word. (The two words are never the same one: a maplet has at least two buckets, and then an item's two
//!    differ.)
//!
//! An item that is being relocated is in both words for a moment. The answer is a set, so that makes no difference.
//!
//! So an item that is there throughout is found. While a value is replaced, either the old one or the new one is
//! there at each moment.
//!
//! *Why additions bump.* Otherwise a thread could add `x` to the first word after the lookup has read that word, and
//! then `y` to the second word before the lookup reads that one. The answer would have `y` without `x`. Also, a
//! relocation could carry to the second word what the lookup has missed in the first: `x` is replaced by `y` in the
//! first word, just after it was read; then `y` is put into the second word, and the answer has both.
//!
//! *Why additions take the lock.* `insert_if_absent` finds no value under the lock, and then adds its own. If an
//! insert could come in between, a lookup could find that insert's value alone, although `insert_if_absent` then
//! reports that it found none. (In a filter that does no harm: a lookup that finds either copy gives the same
//! answer.)
//!
//! *Why `replace` takes the lock.* A relocation may have filled the new slot and not yet cleared the old one. A
//! `replace` at that moment would leave the old value behind.
//!
//! `clear` empties one word after the other. So a lookup may find a set that the key had at no moment, of values that
//! it had. The documentation says so.
//!
//! # Linearizability
//! The operations are linearizable over the multiset of items, and for all keys together as in `table/stripe.rs`:
//!
//! | operation | takes effect |
//! |---|---|
//! | `insert`, `remove`, `replace` | at their compare-exchange. *false*: at any moment under the lock |
//! | `insert_if_absent` | at its compare-exchange. Where it returns values: as `values`, or at any moment under the lock |
//! | `count` | at any moment under the lock |
//! | `values`, `contains` | at the moment that step 3 describes. `contains` may also take effect as in a filter |
//! | an insert that fails | at the moment without room that `table/stripe.rs` describes |

use core::hint::select_unpredictable;

use crate::error::insert::InsertError;
use crate::plan::batch::BLOCK;
use crate::sync::fault::{self, Fault};
use crate::table::lookup::Seen;
use crate::table::relocate::{Effort, Purpose};
use crate::table::stripe::Guard;
use crate::table::table::{Table, TakeFaults};
use crate::word::bucket::{BucketOps, Place};
use crate::word::geometry::{Geometry, Item, Items};
use crate::word::layout::{Fingerprint, Layout};
use crate::word::payloads::{OnlyPlace, PayloadOps};
use crate::word::values::Values;

impl<L: Layout, G: Geometry> Table<L, G> {
    /// The item of a key with this hash, with a payload.
    #[inline(always)]
    pub(super) fn item_with(&self, hash: u64, payload: u16) -> Item {
        self.item(hash).with(self.layout(), payload)
    }

    /// [`item_with`](Self::item_with) for later, as `item_again`.
    #[inline(always)]
    pub(super) fn item_with_again(&self, hash: u64, payload: u16) -> impl FnOnce() -> Item + Copy {
        move || self.item_with(hash, payload)
    }

    /// The payloads of all copies of the item's class. Lock-free.
    #[cfg(ccf_model)]
    pub(crate) fn values(&self, item: Item) -> Values {
        self.values_or_again(self.layout(), item, self.same_again(item))
    }

    /// The payloads of all copies of the item's class, which `again` returns too. Lock-free.
    #[inline(always)]
    pub(super) fn values_or_again(&self, layout: impl Layout, item: Item, again: impl FnOnce() -> Item) -> Values {
        // The item has no payload.
        let fingerprint = Fingerprint(item.entry.0);
        let found = |first, second| {
            let OnlyPlace { place, several } =
                layout.only_place([first, second], layout.lanes_in_either(first, second, fingerprint));
            if several != 0 { self.layout.values(first, second, fingerprint) } else { self.value_at(place) }
        };
        self.look_once(item, found, |_, _| self.values_anew(again))
    }

    /// The only value of a key: the payload at its place, if it has one.
    #[inline(always)]
    fn value_at(&self, place: Place) -> Values {
        Values::of_one_if(place.exists(), self.layout.payload_at(place), self.layout.payload_bits())
    }

    /// `values` where the first look was disturbed: counts that, and looks again until a look is undisturbed.
    #[cold]
    #[inline(never)]
    fn values_anew(&self, item: impl FnOnce() -> Item) -> Values {
        let item = item();
        loop {
            self.counters.lookup_retried();
            let found = |first, second| Some(self.layout.values(first, second, self.fingerprint(item)));
            if let Some(values) = self.look_once(item, found, |_, _| None) {
                return values;
            }
        }
    }

    /// `values` for each of the first `len` items of a block, into `found`, which is empty. If there are items to
    /// come, prefetches their buckets.
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
        let mut seen = Seen::NOTHING;
        let changes = self.look_at_block(items, len, coming, &mut seen);
        let mut places = [OnlyPlace::default(); BLOCK];
        for (nth, place) in places.iter_mut().enumerate() {
            *place = self.layout.only_place(seen.buckets(nth), self.lanes_of_nth(items, &seen, nth));
        }
        for (nth, OnlyPlace { place, several }) in places.into_iter().enumerate().take(len) {
            found[nth] = if several != 0 {
                let [first, second] = seen.buckets(nth);
                self.layout.values(first, second, Fingerprint(items.entries[nth]))
            } else {
                self.value_at(place)
            };
        }
        if changes != 0 && !fault::injected(Fault::LookupWithoutVersion) {
            for (nth, values) in found.iter_mut().enumerate().take(len) {
                *values = self.values_anew(|| items.get(nth));
            }
        }
    }

    /// Adds a copy of the item.
    #[inline(always)]
    pub(super) fn insert_with_value(&self, item: Item) -> Result<(), InsertError> {
        self.insert_value_uncounted(item)?;
        self.counters.add_len(1);
        Ok(())
    }

    /// As `insert_with_value`, without counting the copy.
    #[inline(always)]
    pub(super) fn insert_value_uncounted(&self, item: Item) -> Result<(), InsertError> {
        // As in `remove_hash`.
        self.prefetch(item);
        if let Some(guard) = self.stripe(item.sum).try_lock_unless(Fault::AddValueWithoutLock)
            && !self.is_being_saved()
            && self.bump_and_add_at_once(&guard, item)
        {
            return Ok(());
        }
        self.insert_value_anyhow(item)
    }

    /// The same where it takes more than one step.
    #[cold]
    #[inline(never)]
    fn insert_value_anyhow(&self, item: Item) -> Result<(), InsertError> {
        let mut effort = Effort::default();
        loop {
            {
                let guard = self.stripe(item.sum).lock_unless(Fault::AddValueWithoutLock, &self.counters);
                if self.bump_and_add(&guard, item) {
                    return Ok(());
                }
            }
            if effort.is_enough() {
                return self.insert_undisturbed(item, Purpose::Insert).map(|_| ());
            }
            self.make_room(item, Purpose::Insert, &mut effort)?;
        }
    }

    /// Adds a copy of the item unless there is one of its class. Returns the payloads that it found, or none if it
    /// added the item.
    pub(crate) fn insert_if_absent_telling(&self, item: Item) -> Result<Values, InsertError> {
        let class = item.with(self.layout(), 0);
        // Avoids the lock where a lookup is enough. (Not in the model without the lock, where it would hide the bug.)
        if !fault::injected(Fault::InsertIfAbsentWithoutLock) {
            let found = self.values_or_again(self.layout(), class, self.same_again(class));
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let mut effort = Effort::default();
        loop {
            {
                let guard = self.stripe(item.sum).lock_unless(Fault::InsertIfAbsentWithoutLock, &self.counters);
                let found = self.values_locked(item);
                if !found.is_empty() {
                    return Ok(found);
                }
                if self.bump_and_add(&guard, item) {
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

    /// Adds a copy of the item under the lock of its stripe, if a bucket of its own has room.
    fn bump_and_add(&self, guard: &Guard<'_>, item: Item) -> bool {
        self.bump_to_add(guard, Fault::AddValueWithoutBump);
        self.put_in_either::<true>(item)
    }

    /// The same in one step, while there is no save. Also `false` if another thread was faster.
    #[inline(always)]
    fn bump_and_add_at_once(&self, guard: &Guard<'_>, item: Item) -> bool {
        self.bump_to_add(guard, Fault::AddValueWithoutBump);
        self.put_at_once(self.layout(), item)
    }

    /// Gives a copy of one item the payload of the other, which is of the same class. `false` if there is no such
    /// copy.
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
        let changed = self.layout.replace_at(copy, old.entry, new.entry);
        if self.is_being_saved()
            || fault::injected(Fault::ReplaceTakesFirst)
            || fault::injected(Fault::ReplaceAddsFirst)
            || !self.take_at_once(&guard, bucket, copy.bucket, changed, TakeFaults::REPLACE)
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
