//! CONCURRENT: how many items a growing table takes at most, whoever adds them and in whatever order.
//!
//! A table that cannot grow further (at its largest size, or at its limit for the memory) often has room for more items than its
//! capacity, if paths happen to be found. Which items have room then depends on where the others are, and so on the order of
//! the inserts and on their threads. A process that starts again, and repeats inserts that were accepted, could be refused some of
//! them. So a table never takes more items than its capacity at the size where growth ends: the *limit*. Up to the limit,
//! distinct keys find room in practically any order (`plan.rs` has the loads). Whether an insert is accepted thus depends on the
//! number of items alone.
//!
//! # The rules
//! The word of a shard of the counters is a `Turn` (`table/counters.rs`). All changes of it are single steps.
//!
//! 1. An insert counts its item before it adds a copy, and takes that back if it adds none. A removal counts after it has taken
//!    its copy. So there are never more copies than items.
//! 2. As many inserts of a shard as `INSERTS_PER_CHECK` go on without a check. Each further one makes a *check*: it reads its
//!    shard's turn, adds up the items of all shards, and goes on if these are below the limit by more than all shards may permit at
//!    one time, twice. Then it permits its shard further inserts, unless the shard was closed, or permitted some, since it has
//!    read the turn. (The check also grows the table, if it holds more items than its capacity.)
//! 3. Nearer to the limit, a check takes its own item back, locks `resizing`, *closes* all shards, and adds up their items as
//!    they were at that step. Below the limit, it counts its item again and goes on; it is *admitted*. Otherwise the insert fails.
//! 4. A closed shard permits nothing, so that each of its inserts makes a check. The shards are opened under the lock, if by
//!    then the items are far below the limit again, or for the first time.
//!
//! # There are never more items than the limit
//! *While the shards are closed*, an insert that goes on was admitted, or its turn came before that of its shard's closing. Those
//! are in the sum, because one word says what was counted and whether the shard is closed. Admitted ones are in the sum of the next
//! check, which takes the same lock. So between the sum and the count of an admitted item, the number of items does not rise.
//! (An insert that is about to take its item back may be in the sum: it makes that too high.)
//!
//! *While they are open*, a shard permits `INSERTS_PER_CHECK` inserts at a time, by a check that has begun after the shard was
//! permitted any before. So, from the moment on at which the items are twice as near to the limit as rule 2 says, a shard may
//! use up what it was permitted; or, if a check has begun before that moment and permits only then, as many. In its next check it sees
//! the new sum, and closes. That is one half of the distance. The other half is for removals: a sum that overlaps some may be too low
//! by as many, because it may have missed an item that came in, and have seen that another one went that came later. (It would take
//! as many removals as that half during one sum, in each of several sums in a row, to exceed the limit.)
//!
//! # An insert is refused only at the limit
//! A refused insert has added up the items under the lock, after all shards were closed. No other thread is admitted meanwhile, so
//! the items only become fewer while it adds them up. So if the sum is at the limit, there were that many when it began to add
//! them up. An insert in progress counts as an item: it may be refused room for itself later, by copies of its key.
//!
//! `insert_if_absent` looks for its key between taking the lock and the sum. If the key is absent, there was a moment at which it
//! was, and at which there were as many items as the limit: no thread was admitted between that and the sum.
//!
//! # What it costs
//! An insert counts its item in any case. So the rule costs it nothing until the limit is near; then it takes a lock that other
//! inserts take too, and reads or changes a cache line for each shard. A small table always is near its limit.

use crate::error::insert::GrowableInsertError;
use crate::growth::growing_table::GrowingTable;
use crate::table::attempt::{Attempt, IfPresent};
use crate::word::classes::Class;

/// How far the items are from the limit at least while inserts go on without a check, in units of those that all shards may permit
/// at one time.
const DISTANCE: usize = 2;

/// How far they are when the shards are opened again: so they are not opened and closed all the time.
const DISTANCE_TO_OPEN: usize = 4;

impl GrowingTable {
    /// The check of an insert that has counted its item. The result is `NoRoom` if it may go on: nothing was added yet. Otherwise
    /// its item is counted no more: it is `Present` if the insert adds only to an absent class, and there is a copy; or an error.
    ///
    /// It also grows the table if that holds more items than its capacity, by at most `groups` groups, which it lowers.
    pub(super) fn check(
        &self,
        class: Class,
        if_present: IfPresent,
        groups: &mut usize,
    ) -> Result<Attempt, GrowableInsertError> {
        let (counters, most) = (self.counters(), self.most());
        let turn = counters.turn();
        // For what was added before: this insert may yet find that it has no need for room.
        self.grow_if_crowded(1, groups);
        if !turn.is_closed() && counters.len().saturating_add(DISTANCE * counters.most_permitted()) <= most {
            counters.permit(turn);
            return Ok(Attempt::NoRoom);
        }
        counters.add_len(-1);
        let _resizing = self.resizing().lock.lock();
        if if_present != IfPresent::Add && self.contains(self.plan.classes.hash(class)) {
            return Ok(Attempt::Present);
        }
        let len = counters.close();
        if len >= most {
            return Err(self.limit_reached(len));
        }
        counters.add_len(1);
        if len.saturating_add(DISTANCE_TO_OPEN * counters.most_permitted()) <= most {
            counters.open();
            counters.permit(counters.turn());
        }
        Ok(Attempt::NoRoom)
    }
}
