//! CONCURRENT: how many items a growing table takes at most, whoever adds them and in whatever order.
//!
//! A table that cannot grow further (at its largest size, or at its limit for the memory) often has room for more items than its
//! capacity, if paths happen to be found. Which items have room then depends on where the others are, and so on the order of
//! the inserts and on their threads. A process that starts again, and repeats inserts that were accepted, could fail for some of
//! them. So a table never takes more items than its capacity at the size where growth ends: the *limit*. Up to the limit,
//! distinct keys find room in practically any order (`plan.rs` has the loads). Whether an insert is accepted thus depends on the
//! number of items alone.
//!
//! # The rules
//! The word of a shard of the counters is a `ShardWord` (`table/counters.rs`). All changes of it are single steps.
//!
//! 1. An insert counts its item before it adds a copy, in the step by which it is permitted to, and takes that back if it then
//!    adds none. A removal counts after it has taken its copy. So there are never more copies than items.
//! 2. A shard permits `INSERTS_PER_CHECK` inserts without a check. The next one makes a *check*, before it counts its item: it
//!    reads its shard's word, and adds up the items of all shards. If these are below the limit by more than all shards may permit at
//!    one time, twice, the check counts the insert's item and allows its shard further ones, in one step; unless the shard was
//!    closed, or was allowed any, since the check has read the word. (The check also grows the table, if it holds more items
//!    than its capacity.)
//! 3. Nearer to the limit, a check locks `resizing`, *closes* all shards, and adds up their items as they were at that step. Below
//!    the limit, it counts its insert's item under the lock: the insert is *admitted*. Otherwise the insert fails.
//! 4. A closed shard permits nothing, so that each of its inserts makes a check. The shards are opened under the lock, if by
//!    then the items are far below the limit again, or for the first time.
//!
//! # There are never more items than the limit
//! *While the shards are closed*, an insert that goes on was admitted, or changed its shard's word before that was closed. Those
//! are in the sum, because one word says what was counted and whether the shard is closed. Admitted ones are in the sum of the next
//! check, which takes the same lock. So between the sum and the count of an admitted item, the number of items does not rise.
//!
//! *While they are open*, a check allows a shard `INSERTS_PER_CHECK` inserts at a time, and has begun after the shard was
//! allowed any before. So, from the moment on at which the items are twice as near to the limit as rule 2 says, a shard may
//! use up what it was allowed; or, if a check has begun before that moment and succeeds only then, as many. Its next check sees
//! the new sum, and closes. That is one half of the distance. The other half is for removals: a sum that overlaps some may be too low
//! by as many, because it may have missed an item that came in, and have seen that another one went that came later. (It would take
//! as many removals as that half during one sum, in each of several sums in a row, to exceed the limit.)
//!
//! # An insert fails only at the limit
//! An insert that fails has added up the items under the lock, after all shards were closed. No other thread is admitted meanwhile, so
//! the items only become fewer while it adds them up. So if the sum is at the limit, there were that many when it began to add
//! them up. Each of them is a copy, or belongs to an insert in progress that was permitted. Such an insert may yet add none,
//! because its class has too many copies. An insert that is about to fail has counted nothing, and so makes no other one fail.
//!
//! `insert_if_absent` looks for its key between taking the lock and the sum. If the key is absent, there was a moment at which it
//! was, and at which there were as many items as the limit: no thread was admitted between that and the sum.
//!
//! # What it costs
//! An insert counts its item in any case. So the rule costs it nothing until the limit is near; then it takes a lock that other
//! inserts take too, and reads or changes a cache line for each shard. A small table always is near its limit.

use crate::error::insert::GrowableInsertError;
use crate::growth::growing_table::GrowingTable;
use crate::table::attempt::IfPresent;
use crate::word::classes::Class;

/// How far the items are from the limit at least while inserts go on without a check, in units of those that all shards may permit
/// at one time.
const DISTANCE: usize = 2;

/// How far they are when the shards are opened again: so they are not opened and closed all the time.
const DISTANCE_TO_OPEN: usize = 4;

/// What a check has found, if not that the table is at its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The insert may add its copy. Its item is counted.
    MayAdd,
    /// There is a copy, and the insert adds only where there is none.
    Present,
}

impl GrowingTable {
    /// The check of an insert that was not permitted without one. Adds nothing.
    ///
    /// It also grows the table if that holds more items than its capacity, by at most `groups` groups, which it lowers.
    pub(super) fn check(
        &self,
        class: Class,
        if_present: IfPresent,
        groups: &mut usize,
    ) -> Result<Checked, GrowableInsertError> {
        let (counters, most) = (self.counters(), self.most());
        let is_far = |len: usize, distance| len.saturating_add(distance * counters.most_permitted()) <= most;
        let word = counters.word();
        self.grow_if_over_capacity(groups);
        if !word.is_closed() && is_far(counters.len(), DISTANCE) {
            // If another thread of the shard has made a check meanwhile, that one may have allowed this insert too.
            if counters.count_checked_insert(word) || counters.count_permitted_insert() {
                return Ok(Checked::MayAdd);
            }
        }
        let _resizing = self.resizing().lock.lock();
        if if_present != IfPresent::Add && self.contains(self.plan.classes.hash(class)) {
            return Ok(Checked::Present);
        }
        let len = counters.close();
        if len >= most {
            return Err(self.limit_reached(len));
        }
        counters.add_len(1);
        if is_far(len, DISTANCE_TO_OPEN) {
            counters.open();
        }
        Ok(Checked::MayAdd)
    }
}
