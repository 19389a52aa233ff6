//! CONCURRENT: the operations of a filter that grows, at rest and while its table is being replaced. `growth/mod.rs` has the
//! reasoning.

use crate::error::insert::{InsertBatchError, InsertError};
use crate::error::kind::FilterKind;
use crate::growth::growth::{Growth, NOTHING, RESIZING, Tables, is_amid};
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
        let phase = self.phase();
        if !is_amid(phase) {
            let level = self.current();
            if level.contains(hash) {
                return true;
            }
            if self.is_still(phase) || fault::injected(Fault::LookupIgnoresNext) {
                return false;
            }
        }
        self.contains_amid(hash)
    }

    /// `contains` where there may be two tables.
    #[inline(never)]
    fn contains_amid(&self, hash: u64) -> bool {
        self.settled(Fault::LookupIgnoresLaterNext, |tables| {
            let found = tables.contain(hash);
            (found, found)
        })
    }

    /// How many copies are in.
    pub(crate) fn count(&self, hash: u64) -> usize {
        self.settled(Fault::WriterIgnoresLaterNext, |tables| {
            let Some(next) = tables.next else { return (tables.level.count(hash), false) };
            let _guard = self.lock(hash);
            tables.prepare(hash);
            (tables.level.copies(hash) + next.copies(hash), false)
        })
    }

    /// Removes a copy, if there is one.
    pub(crate) fn remove(&self, hash: u64) -> bool {
        let phase = self.phase();
        if !is_amid(phase) {
            if self.current().remove(hash) {
                return true;
            }
            if self.is_still(phase) {
                return self.common.counters.removal(false);
            }
        }
        self.common.counters.removal(self.remove_amid(hash))
    }

    /// `remove` where there may be two tables.
    #[inline(never)]
    fn remove_amid(&self, hash: u64) -> bool {
        self.settled(Fault::WriterIgnoresLaterNext, |tables| {
            let Some(next) = tables.next else {
                let removed = tables.level.remove(hash);
                return (removed, removed);
            };
            let guard = self.lock(hash);
            tables.prepare(hash);
            let removed = tables.level.take(&guard, hash) || next.take(&guard, hash);
            (removed, removed)
        })
    }

    /// Asks the tables, until the answer is certain or they were all tables there were. `ask` returns its answer, and
    /// whether that is certain.
    #[inline(always)]
    fn settled<R>(&self, ignored: Fault, ask: impl Fn(&Tables<'_>) -> (R, bool)) -> R {
        loop {
            let answer = self.with_tables(|tables| {
                let (answer, is_certain) = ask(tables);
                (is_certain || tables.are_all(ignored)).then_some(answer)
            });
            if let Some(answer) = answer {
                return answer;
            }
        }
    }

    /// The lock of the class, at all levels.
    fn lock(&self, hash: u64) -> Guard<'_> {
        self.stripe(hash).lock(&self.common.counters)
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
        let phase = self.phase();
        if !is_amid(phase)
            && let Some(added) = self.current().add_if_absent(hash, &|| !self.is_still(phase))
        {
            return Ok(added);
        }
        self.insert_slow(hash, Purpose::InsertIfAbsent)
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
        self.with_tables(|tables| match tables.next {
            Some(next) => self.insert_amid(tables, next, hash, purpose),
            None => self.insert_alone(tables, hash, purpose),
        })
    }

    /// The same where there is one table.
    fn insert_alone(&self, tables: &Tables<'_>, hash: u64, purpose: Purpose) -> Result<Option<bool>, InsertError> {
        let (level, absent) = (tables.level, purpose == Purpose::InsertIfAbsent);
        let attempt = |_: &Guard<'_>| tables.attempt(level, hash, absent);
        if self.len() < level.made_for() {
            match level.until_added(hash, purpose, absent, &attempt) {
                Err(InsertError::Full { .. }) => {}
                Err(_) if !tables.are_all(Fault::WriterIgnoresLaterNext) => return Ok(None),
                settled => return settled.map(answer),
            }
        } else {
            let guard = self.lock(hash);
            if let Some(added) = attempt(&guard) {
                return Ok(answer(added));
            }
        }
        let refused = match self.grow(level) {
            Grown::Done => return Ok(None),
            Grown::UnderWay => None,
            Grown::Refused(error) => Some(error),
        };
        // As long as there is any room, no thread waits for a table and none is refused.
        match (level.until_added(hash, purpose, absent, &attempt), refused) {
            (Err(_), _) if !tables.are_all(Fault::WriterIgnoresLaterNext) => Ok(None),
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
        tables: &Tables<'_>,
        next: &Level,
        hash: u64,
        purpose: Purpose,
    ) -> Result<Option<bool>, InsertError> {
        next.prefetch(&[hash]);
        let (level, absent) = (tables.level, purpose == Purpose::InsertIfAbsent);
        tables.prepare(hash);
        if next.number() < level.number() {
            // If the smaller table has to be given up, all must fit in the larger one. So a further copy of a key waits.
            let _guard = self.lock(hash);
            let is_first = absent || level.copies(hash) + next.copies(hash) == 0;
            if is_first
                && self.len() < level.made_for()
                && let Some(added) = tables.attempt(next, hash, absent).or_else(|| tables.attempt(level, hash, absent))
            {
                return Ok(answer(added));
            }
        } else {
            match next.until_added(hash, purpose, absent, &|_| tables.attempt(next, hash, absent)) {
                Ok(added) => return Ok(answer(added)),
                Err(_) if !tables.are_all(Fault::WriterIgnoresLaterNext) => return Ok(None),
                Err(error @ InsertError::TooManyCopies { .. }) => return Err(error),
                Err(_) => {}
            }
        }
        let (_resizing, ended) = self.at_rest();
        let full = InsertError::Full { filter: FilterKind::Growable, len: self.len(), capacity: level.made_for() };
        if ended { Ok(None) } else { Err(full) }
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
            if !self.contains_all_at_rest(&buffer[..len], &mut found[..len]) {
                self.contains_all_amid(&buffer[..len], &mut found[..len]);
            }
            answers(&found[..len]);
        }
    }

    /// Whether each of these is in, if there is one table. Else returns `false`; those that it has found are in all the
    /// same.
    fn contains_all_at_rest(&self, hashes: &[u64], found: &mut [bool]) -> bool {
        found.fill(false);
        let phase = self.phase();
        if is_amid(phase) {
            return false;
        }
        let mut blocks = hashes.chunks(BLOCK);
        let mut next = |block: &mut [u64; BLOCK]| {
            let hashes = blocks.next().unwrap_or_default();
            block[..hashes.len()].copy_from_slice(hashes);
            hashes.len()
        };
        let mut answered = 0;
        self.current().contains_batch(&mut next, &mut |answers| {
            found[answered..answered + answers.len()].copy_from_slice(answers);
            answered += answers.len();
        });
        self.is_still(phase) || fault::injected(Fault::LookupIgnoresNext)
    }

    /// The same where there may be two tables, for those that were not found yet.
    fn contains_all_amid(&self, hashes: &[u64], found: &mut [bool]) {
        let are_all = self.with_tables(|tables| {
            let mut ahead = hashes.chunks(BLOCK);
            tables.prefetch(ahead.next().unwrap_or_default());
            for (found, hashes) in found.chunks_mut(BLOCK).zip(hashes.chunks(BLOCK)) {
                tables.prefetch(ahead.next().unwrap_or_default());
                for (found, &hash) in found.iter_mut().zip(hashes) {
                    *found = *found || tables.contain(hash);
                }
            }
            tables.are_all(Fault::LookupIgnoresLaterNext)
        });
        if !are_all {
            for (found, &hash) in found.iter_mut().zip(hashes) {
                *found = *found || self.contains_amid(hash);
            }
        }
    }

    /// Prefetches the buckets of these.
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        self.current().prefetch(hashes);
    }

    /// `insert` for many, in their order.
    pub(crate) fn insert_batch(&self, hashes: Hashes<'_>) -> Result<usize, InsertBatchError> {
        let (mut inserted, mut refused) = (0, None);
        each_ahead(
            hashes,
            |hashes| self.prefetch(hashes),
            |hashes, ()| {
                for &hash in hashes {
                    if let Err(error) = self.insert(hash) {
                        refused = Some(error);
                        return false;
                    }
                    inserted += 1;
                }
                true
            },
        );
        refused.map_or(Ok(inserted), |error| Err(InsertBatchError::new(inserted, error)))
    }

    /// `remove` for many, in their order.
    pub(crate) fn remove_batch(&self, hashes: Hashes<'_>, answers: &mut dyn FnMut(&[bool])) {
        each_ahead(
            hashes,
            |hashes| self.prefetch(hashes),
            |hashes, ()| {
                let mut removed = [false; BLOCK];
                for (&hash, removed) in hashes.iter().zip(&mut removed) {
                    *removed = self.remove(hash);
                }
                answers(&removed[..hashes.len()]);
                true
            },
        );
    }

    /// Removes all copies that are there when it begins. The table stays.
    pub(crate) fn clear(&self) {
        let (mut resizing, _) = self.at_rest();
        let level = self.current_level();
        if let Some(next) = level.next.get(&self.registry) {
            next.clear();
        }
        level.clear();
        drop(level);
        // A shrink that could not be undone now can.
        self.finish(&mut resizing);
    }
}

impl Tables<'_> {
    /// Whether a copy is in.
    #[cfg_attr(not(ccf_model), inline(always))]
    fn contain(&self, hash: u64) -> bool {
        let Some(next) = self.next else { return self.level.contains(hash) };
        let stripe = self.growth.stripe(hash);
        loop {
            if let Some(found) = self.level.look_in_both(next, stripe, hash) {
                return found;
            }
            self.growth.common.counters.lookup_retried();
        }
    }

    /// Prefetches the buckets of these.
    fn prefetch(&self, hashes: &[u64]) {
        match self.next {
            Some(next) => self.level.prefetch_in_both(next, hashes),
            None => self.level.prefetch(hashes),
        }
    }

    /// Makes sure that copies of the class are where the caller may change them: in the larger one of two tables, or in
    /// either.
    fn prepare(&self, hash: u64) {
        if let Some(next) = self.next
            && next.number() > self.level.number()
        {
            self.level.split_pair(hash, next);
        }
    }

    /// Adds a copy to one of the tables if either bucket has room; if it is to be `absent`, unless there is one. `None` if
    /// there is no room.
    fn attempt(&self, to: &Level, hash: u64, absent: bool) -> Option<Added> {
        if absent && self.level.copies(hash) + self.next.map_or(0, |next| next.copies(hash)) > 0 {
            return Some(Added::No);
        }
        if !self.are_all(Fault::WriterIgnoresLaterNext) {
            return Some(Added::Moved);
        }
        to.add(hash).then_some(Added::Yes)
    }
}

/// The answer to an insert; `None` if it is to be repeated.
fn answer(added: Added) -> Option<bool> {
    match added {
        Added::Yes => Some(true),
        Added::No => Some(false),
        Added::Moved => None,
    }
}
