//! CONCURRENT: the operations of a filter that grows, at rest and while its table is being replaced. `growth/mod.rs` has the
//! reasoning.

use crate::error::insert::{InsertBatchError, InsertError};
use crate::error::kind::FilterKind;
use crate::growth::growth::{Growth, NOTHING, RESIZING};
use crate::growth::level::Level;
use crate::growth::resize::Grown;
use crate::plan::batch::{BLOCK, Hashes, each_ahead};
use crate::sync::Ordering;
use crate::sync::fault::{self, Fault};
use crate::table::face::level::Added;
use crate::table::relocate::Purpose;
use crate::table::stripe::Guard;

/// How many lookups of a batch are made at a time. They are enough that the beginning of each part, which has to wait for
/// memory, matters little.
const AT_ONCE: usize = if cfg!(ccf_model) { BLOCK } else { 16 * BLOCK };

impl Growth {
    /// Whether a copy is in. Lock-free.
    #[inline(always)]
    pub(crate) fn contains(&self, hash: u64) -> bool {
        let (turn, level) = (self.turn(), self.current());
        if level.contains(hash) {
            return true;
        }
        if self.was_alone(&level, turn) || fault::injected(Fault::LookupIgnoresNext) {
            return false;
        }
        drop(level);
        self.contains_amid(hash)
    }

    /// `contains` where the table is being replaced.
    #[cold]
    #[inline(never)]
    fn contains_amid(&self, hash: u64) -> bool {
        loop {
            let (turn, level) = (self.turn(), self.current());
            let Some(next) = level.next.hold(&self.registry) else {
                if level.contains(hash) {
                    return true;
                }
                if self.was_alone(&level, turn) {
                    return false;
                }
                continue;
            };
            let stripe = level.stripe(hash);
            let version = stripe.version();
            if level.either_holds(hash, [true; 2]) || next.either_holds(hash, filled(&level, &next, hash)) {
                return true;
            }
            let are_all = are_all(&level, &next, Fault::LookupIgnoresLaterNext);
            if are_all && (stripe.is_still(version) || fault::injected(Fault::LookupWithoutVersion)) {
                return false;
            }
            self.common.counters.lookup_retried();
        }
    }

    /// How many copies are in.
    pub(crate) fn count(&self, hash: u64) -> usize {
        loop {
            let (turn, level) = (self.turn(), self.current());
            let Some(next) = level.next.hold(&self.registry) else {
                let copies = level.count(hash);
                if self.was_alone(&level, turn) {
                    return copies;
                }
                continue;
            };
            let _guard = level.lock(hash);
            prepare(&level, &next, hash);
            let copies = level.copies(hash) + next.copies(hash);
            if are_all(&level, &next, Fault::WriterIgnoresLaterNext) {
                return copies;
            }
        }
    }

    /// Removes a copy, if there is one.
    pub(crate) fn remove(&self, hash: u64) -> bool {
        let (turn, level) = (self.turn(), self.current());
        if level.remove(hash) {
            return true;
        }
        if self.was_alone(&level, turn) {
            return false;
        }
        drop(level);
        self.remove_amid(hash)
    }

    /// `remove` where the table is being replaced.
    #[cold]
    #[inline(never)]
    fn remove_amid(&self, hash: u64) -> bool {
        loop {
            let (turn, level) = (self.turn(), self.current());
            let Some(next) = level.next.hold(&self.registry) else {
                if level.remove(hash) {
                    return true;
                }
                if self.was_alone(&level, turn) {
                    return false;
                }
                continue;
            };
            let guard = level.lock(hash);
            prepare(&level, &next, hash);
            if level.take(&guard, hash) || next.take(&guard, hash) {
                return true;
            }
            if are_all(&level, &next, Fault::WriterIgnoresLaterNext) {
                return false;
            }
        }
    }

    /// Adds a copy.
    #[inline(always)]
    pub(crate) fn insert(&self, hash: u64) -> Result<(), InsertError> {
        let pending = self.pending();
        if pending == RESIZING || !self.current().add_in_one_step(hash) {
            return self.insert_slow(hash, Purpose::Insert).map(|_| ());
        }
        if pending != NOTHING {
            self.help();
        }
        Ok(())
    }

    /// Adds a copy unless there is one.
    pub(crate) fn insert_if_absent(&self, hash: u64) -> Result<bool, InsertError> {
        // Avoids the lock where a lookup is enough.
        if self.contains(hash) {
            return Ok(false);
        }
        let level = self.current();
        let added = level.add_if_absent(hash, &|| level.next.is_some());
        drop(level);
        match added {
            Some(added) => Ok(added),
            None => self.insert_slow(hash, Purpose::InsertIfAbsent),
        }
    }

    /// What there is to help with. Inserts ask this first.
    #[inline(always)]
    fn pending(&self) -> u64 {
        // Relaxed: an insert that asks too early is like one that began earlier.
        self.pending.load(Ordering::Relaxed)
    }

    /// Adds a copy where that takes more than one step. Returns whether it did.
    #[cold]
    #[inline(never)]
    fn insert_slow(&self, hash: u64, purpose: Purpose) -> Result<bool, InsertError> {
        loop {
            if let Some(added) = self.insert_once(hash, purpose).map_err(|error| self.refused(error, hash))? {
                if self.pending() != NOTHING {
                    self.help();
                }
                return Ok(added);
            }
        }
    }

    /// Counts the refusal and returns its error.
    fn refused(&self, error: InsertError, hash: u64) -> InsertError {
        self.refused.fetch_add(1, Ordering::Relaxed);
        match error.of(FilterKind::Growable) {
            InsertError::TooManyCopies { filter, .. } => {
                InsertError::TooManyCopies { filter, copies: self.count(hash) }
            }
            error => error,
        }
    }

    /// One attempt to add a copy. `None` if it is to be repeated.
    fn insert_once(&self, hash: u64, purpose: Purpose) -> Result<Option<bool>, InsertError> {
        let level = self.current();
        if let Some(next) = level.next.hold(&self.registry) {
            return self.insert_amid(&level, &next, hash, purpose);
        }
        let absent = purpose == Purpose::InsertIfAbsent;
        let attempt = |_: &Guard<'_>| {
            if absent && level.copies(hash) > 0 {
                return Some(Added::No);
            }
            if level.next.is_some() {
                return Some(Added::Moved);
            }
            level.add(hash).then_some(Added::Yes)
        };
        if self.len() < level.made_for() {
            match level.until_added(hash, purpose, absent, &attempt) {
                Err(InsertError::Full { .. }) => {}
                settled => return settled.map(answer),
            }
        } else {
            let guard = level.lock(hash);
            if let Some(added) = attempt(&guard) {
                return Ok(answer(added));
            }
        }
        let refused = match self.grow(&level) {
            Grown::Done => return Ok(None),
            Grown::UnderWay => None,
            Grown::Refused(error) => Some(error),
        };
        // As long as there is any room, no thread waits for a table and none is refused.
        match (level.until_added(hash, purpose, absent, &attempt), refused) {
            (Err(_), _) if level.next.is_some() => Ok(None),
            (Err(InsertError::Full { .. }), Some(error)) => Err(error),
            (Err(InsertError::Full { .. }), None) => {
                drop(self.resizing.lock());
                Ok(None)
            }
            (settled, _) => settled.map(answer),
        }
    }

    /// The same where the table is being replaced.
    fn insert_amid(
        &self,
        level: &Level,
        next: &Level,
        hash: u64,
        purpose: Purpose,
    ) -> Result<Option<bool>, InsertError> {
        next.prefetch(&[hash]);
        let absent = purpose == Purpose::InsertIfAbsent;
        let shrinks = next.number() < level.number();
        prepare(level, next, hash);
        let attempt = |to: &Level| {
            if absent && level.copies(hash) + next.copies(hash) > 0 {
                return Some(Added::No);
            }
            if !are_all(level, next, Fault::WriterIgnoresLaterNext) {
                return Some(Added::Moved);
            }
            to.add(hash).then_some(Added::Yes)
        };
        if shrinks {
            // If the smaller table has to be given up, all must fit in the larger one. So a further copy of a key waits.
            let _guard = level.lock(hash);
            let is_first = absent || level.copies(hash) + next.copies(hash) == 0;
            if is_first
                && self.len() < level.made_for()
                && let Some(added) = attempt(next).or_else(|| attempt(level))
            {
                return Ok(answer(added));
            }
        } else {
            match next.until_added(hash, purpose, absent, &|_| attempt(next)) {
                Ok(added) => return Ok(answer(added)),
                Err(_) if !are_all(level, next, Fault::WriterIgnoresLaterNext) => return Ok(None),
                Err(error @ InsertError::TooManyCopies { .. }) => return Err(error),
                Err(_) => {}
            }
        }
        let (_resizing, ended) = self.at_rest();
        let full = InsertError::Full { filter: FilterKind::Growable, len: self.len(), capacity: level.made_for() };
        if ended { Ok(None) } else { Err(full) }
    }

    /// Moves a copy from the first of its two buckets to the second, or `back`. Amid a growth it does so in the larger
    /// table.
    #[cfg(ccf_model)]
    pub(crate) fn relocate(&self, hash: u64, back: bool) -> bool {
        let level = self.current();
        let Some(next) = level.next.hold(&self.registry) else { return level.relocate(hash, back) };
        prepare(&level, &next, hash);
        next.relocate(hash, back)
    }

    /// `contains` for many.
    pub(crate) fn contains_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let mut buffer = [0; AT_ONCE];
        let mut found = [false; AT_ONCE];
        let mut more = true;
        while more {
            // The caller's code is called only while no table is held.
            let mut len = 0;
            let mut block = [0; BLOCK];
            while more && len < AT_ONCE {
                let taken = hashes(&mut block);
                more = taken == BLOCK;
                buffer[len..len + taken].copy_from_slice(&block[..taken]);
                len += taken;
            }
            if len == 0 {
                return;
            }
            let is_over = {
                let (turn, level) = (self.turn(), self.current());
                let (mut taken, mut answered) = (0, 0);
                let mut next = |block: &mut [u64; BLOCK]| {
                    let count = BLOCK.min(len - taken);
                    block[..count].copy_from_slice(&buffer[taken..][..count]);
                    taken += count;
                    count
                };
                level.contains_batch(&mut next, &mut |answers| {
                    found[answered..answered + answers.len()].copy_from_slice(answers);
                    answered += answers.len();
                });
                self.was_alone(&level, turn) || fault::injected(Fault::LookupIgnoresNext)
            };
            if !is_over {
                for (found, hashes) in found.chunks_mut(BLOCK).zip(buffer[..len].chunks(BLOCK)) {
                    {
                        let level = self.current();
                        if let Some(next) = level.next.hold(&self.registry) {
                            next.prefetch(hashes);
                        }
                    }
                    for (found, &hash) in found.iter_mut().zip(hashes).filter(|(found, _)| !**found) {
                        *found = self.contains_amid(hash);
                    }
                }
            }
            answers(&found[..len]);
        }
    }

    /// `insert` for many, in their order.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let (mut inserted, mut refused) = (0, None);
        let ahead = |hashes: &[u64]| self.current().prefetch(hashes);
        each_ahead(hashes, ahead, |hashes| {
            let level = self.current();
            for &hash in hashes {
                if (self.pending() != NOTHING || !level.add_in_one_step(hash))
                    && let Err(error) = self.insert_slow(hash, Purpose::Insert)
                {
                    refused = Some(error);
                    return false;
                }
                inserted += 1;
            }
            true
        });
        refused.map_or(Ok(inserted), |error| Err(InsertBatchError { inserted, error }))
    }

    /// `remove` for many, in their order.
    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        let ahead = |hashes: &[u64]| self.current().prefetch(hashes);
        each_ahead(hashes, ahead, |hashes| {
            let mut removed = [false; BLOCK];
            {
                let (turn, level) = (self.turn(), self.current());
                for (&hash, removed) in hashes.iter().zip(&mut removed) {
                    *removed = level.remove(hash) || !self.was_alone(&level, turn) && self.remove_amid(hash);
                }
            }
            answers(&removed[..hashes.len()]);
            true
        });
    }

    /// Removes all copies that are there when it begins. The table stays.
    pub(crate) fn clear(&self) {
        let (_resizing, _) = self.at_rest();
        let level = self.current_level();
        if let Some(next) = level.next.get(&self.registry) {
            next.clear();
        }
        level.clear();
    }
}

/// Makes sure that copies of the class are where the caller may change them: in the larger one of two tables, or in
/// either.
fn prepare(level: &Level, next: &Level, hash: u64) {
    if next.number() > level.number() {
        level.split_pair(hash, next);
    }
}

/// Which of a class's two buckets in `next` have what they are to get. A larger table's bucket has it once the old one is
/// marked. Until then, the thread that splits that one may have stored copies that were taken out meanwhile.
fn filled(level: &Level, next: &Level, hash: u64) -> [bool; 2] {
    let grows = next.number() > level.number() && !fault::injected(Fault::LookupTooEarly);
    level.pair(hash).map(|bucket| !grows || level.is_marked(bucket))
}

/// Whether these two are all tables: the resize was not undone, and no further one has begun.
fn are_all(level: &Level, next: &Level, ignored: Fault) -> bool {
    level.next.is(next) && !next.next.is_some() || fault::injected(ignored)
}

/// The answer to an insert; `None` if it is to be repeated.
fn answer(added: Added) -> Option<bool> {
    match added {
        Added::Yes => Some(true),
        Added::No => Some(false),
        Added::Moved => None,
    }
}
