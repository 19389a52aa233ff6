//! CONCURRENT: what only the table of a maplet does: it adds, finds and replaces values.
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
//! version was `n` both times, the answer is the set of the values of the class in both words. If not, it
//! retries.
//!
//! *The answer is a point-in-time view of the key's values.* Number the bumps of the stripe, and give each store the
//! number of the bump before it.
//!
//! 1. The lookup sees all stores before the one of number `n`. It read `n`. All that comes before that bump, on the
//!    bumping thread or by the lock, comes with it.
//! 2. It sees no store after the one of number `n`. A thread that reads a word that has such a store in it also reads
//!    the bump before that store, and the second version would not be `n`.
//! 3. What is left is the one store of number `n`. It is in one of the two words, and the read of that word sees it
//!    or not. So both words together are the state after it, or the state before. Either was the state at the read of
//!    that word. (The two words are never the same one: a maplet has an even number of buckets, and then an item's
//!    two differ.)
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
//! | an insert that fails | at the moment without room that `table/relocate.rs` describes |

use core::cell::Cell;
use core::hint::select_unpredictable;

use crate::error::insert::InsertError;
use crate::lookup::query::AllValues;
use crate::table::attempt::{Attempt, IfPresent};
use crate::table::entries::Value;
use crate::table::image::copy_on_write::Changing;
use crate::table::stripe::AllLocked;
use crate::table::table::Table;
use crate::word::bucket::Bucket;
use crate::word::geometry::Item;
use crate::word::layout::Layout;
use crate::word::values::Values;

impl Table<Value> {
    /// The payloads of all copies of the class of this hash. Lock-free.
    #[inline(always)]
    pub(super) fn values(&self, layout: impl Layout, hash: u64) -> Values {
        self.lookup(layout).ask(AllValues, hash, || self.values_slow(hash))
    }

    /// `values` where the first attempt was invalidated.
    #[cold]
    #[inline(never)]
    fn values_slow(&self, hash: u64) -> Values {
        self.ask_again(AllValues, hash)
    }

    /// Adds a copy of the item of this hash with this payload, a further one if there are some, and counts it.
    #[inline(always)]
    pub(super) fn insert_value_of_hash(&self, layout: impl Layout, hash: u64, payload: u16) -> Result<(), InsertError> {
        self.insert_value(layout, self.geometry.item(layout, hash).with(layout, payload))?;
        self.counters.add_len(1);
        Ok(())
    }

    /// Adds a copy of the item, a further one if there are some, without counting it. Takes the lock of the stripe.
    #[inline(always)]
    pub(super) fn insert_value(&self, layout: impl Layout, item: Item) -> Result<(), InsertError> {
        // As in `remove`.
        self.prefetch(item);
        if let Some(guard) = self.stripe(item.bucket_sum).try_lock()
            && !self.is_being_saved()
        {
            self.bump_to_add(&guard);
            if self.add(layout, item) {
                return Ok(());
            }
        }
        self.insert_value_slow(item)
    }

    /// [`insert_value`](Self::insert_value) where one attempt without waiting was not enough: the lock was taken, a save is
    /// running, or there was no room. It waits for the lock, and makes room by relocations.
    #[cold]
    #[inline(never)]
    fn insert_value_slow(&self, item: Item) -> Result<(), InsertError> {
        let attempt = |all: Option<&AllLocked<'_>>| {
            let changing = self.lock_to_change(item.bucket_sum, 2, all);
            Ok(Attempt::of(self.add_value_locked(&changing, item)))
        };
        self.until_added(item, IfPresent::Add, attempt).map(drop)
    }

    /// Adds a copy of the item, a further one if there are some, without counting it. Returns `false` if neither of its buckets
    /// has room. The lock is that of its stripe, to change two words.
    fn add_value_locked(&self, changing: &Changing<'_>, item: Item) -> bool {
        self.bump_to_add(&changing.guard);
        self.add_locked(changing, item)
    }

    /// Adds a copy of the item of this hash and payload, unless there is one of its class, and counts it. Returns the
    /// payloads that it found, or none if it added the item. Takes the lock of the stripe if it finds none.
    pub(super) fn insert_value_if_absent(&self, hash: u64, payload: u16) -> Result<Values, InsertError> {
        // Avoids the lock where a lookup is enough.
        let found = self.values(self.layout(), hash);
        if !found.is_empty() {
            return Ok(found);
        }
        let (item, found) = (self.item_with(hash, payload), Cell::new(Values::EMPTY));
        self.until_added(item, IfPresent::Skip, |all| {
            let changing = self.lock_to_change(item.bucket_sum, 2, all);
            let pair = [self.load(item.first), self.load(item.second)];
            found.set(Bucket::values(self.layout, pair, self.layout.fingerprint_of(item.entry)));
            if !found.get().is_empty() {
                return Ok(Attempt::Present);
            }
            let added = self.add_value_locked(&changing, item);
            self.counters.add_len(i64::from(added));
            Ok(Attempt::of(added))
        })?;
        Ok(found.get())
    }

    /// Gives a copy of the item of this hash with the old payload the new one. `false` if there is no such copy. (Not
    /// inlined: it is the same for every shape.)
    #[inline(never)]
    pub(super) fn replace(&self, hash: u64, old: u16, new: u16) -> bool {
        let (old, new) = (self.item_with(hash, old), self.item_with(hash, new));
        // As in `remove`.
        self.prefetch(old);
        let Some(guard) = self.stripe(old.bucket_sum).try_lock() else {
            return self.replace_slow(old, new);
        };
        // As in `remove_locked`.
        let pair = [self.load(old.first), self.load(old.second)];
        let (in_first, copy) = Bucket::find_in_either(self.layout, pair, old.entry);
        if !copy.exists() {
            return false;
        }
        let bucket = select_unpredictable(in_first, old.first, old.second);
        let changed = copy.replaced(self.layout, old.entry, new.entry);
        if !self.is_being_saved() {
            guard.bump();
            if self.exchange(bucket, copy.bucket, changed).is_ok() {
                return true;
            }
        }
        drop(guard);
        self.replace_slow(old, new)
    }

    #[cold]
    #[inline(never)]
    fn replace_slow(&self, old: Item, new: Item) -> bool {
        let changing = self.lock_to_change(old.bucket_sum, 1, None);
        [old.first, old.second].into_iter().any(|bucket| {
            let seen = self.load(bucket);
            if !seen.holds_entry(self.layout, old.entry) {
                return false;
            }
            self.copy_for_saves(bucket, changing.spare());
            self.replace_entry(&changing.guard, bucket, seen, old.entry, new.entry)
        })
    }
}
