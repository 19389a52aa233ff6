//! What an event of the watch does to the filter.

use std::sync::atomic::Ordering;

use crate::etcd::messages::{Event, KeyValue, WatchResponse};
use crate::filter::{Known, NoRoom};
use crate::history::Head;
use crate::keys::{ChangeId, TokenId};
use crate::lock;
use crate::shared::{Shared, count};

/// The kind of an event that deletes a key.
const DELETION: i32 = 1;

/// Why the filter can't follow the watch any more.
#[derive(Debug)]
pub(crate) enum Broken {
    NoRoom,
    /// Something is missing between what the node has applied and what has come.
    Gap(String),
}

impl From<NoRoom> for Broken {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// Applies all events of a message, one revision after the other.
pub(crate) fn apply(shared: &Shared, known: &Known, message: &WatchResponse) -> Result<(), Broken> {
    let at = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
    for events in message.events.chunk_by(|one, other| at(one) == at(other)) {
        let revision = at(&events[0]);
        if shared.applied().is_some_and(|applied| revision > applied) {
            apply_revision(shared, known, revision, events)?;
        }
    }
    Ok(())
}

/// A change of the fleet puts a new head, in the same revision as the tokens that it changes. A token that changes in a
/// revision without a new head was changed by a client outside the fleet, or its lease has ended.
fn apply_revision(shared: &Shared, known: &Known, revision: i64, events: &[Event]) -> Result<(), Broken> {
    let (head_key, agreement_key) = (shared.names.head(), shared.names.agreement());
    let head = events.iter().find(|event| event.kv.as_ref().is_some_and(|kv| kv.key == head_key));
    let change = head.map(|event| new_head(shared, revision, event)).transpose()?;
    for event in events {
        let Some(kv) = &event.kv else { continue };
        if let Some(id) = shared.names.id(&kv.key) {
            apply_token(shared, known, id, kv, event, change.is_some())?;
        } else if kv.key != head_key && kv.key != agreement_key {
            count(&shared.tallies.foreign);
            tracing::error!(key = %kv.key.escape_ascii(), "a client outside the fleet changes keys of the fleet");
        }
    }
    let Some((id, time, head)) = change else {
        if let Some(memory) = &mut *lock(&shared.memory) {
            memory.revision = revision;
        }
        return Ok(());
    };
    if let Some(memory) = &mut *lock(&shared.memory) {
        (memory.revision, memory.head) = (revision, head);
    }
    count(&shared.tallies.changes);
    if let Some(waits) = lock(&shared.pending).get(&id) {
        waits.send_modify(|revisions| revisions.push(revision));
    } else if known.is_fresh() {
        let difference = time as i64 - shared.clock.latest() as i64;
        shared.tallies.clock_difference.store(difference, Ordering::Relaxed);
    }
    Ok(())
}

/// The change that has put this head. The head before it must be the last one that the node has applied: otherwise the watch
/// has left out a change.
fn new_head(shared: &Shared, revision: i64, event: &Event) -> Result<(ChangeId, u64, Head), Broken> {
    let value = event.kv.as_ref().filter(|_| event.kind != DELETION).map(|kv| kv.value.to_vec()).unwrap_or_default();
    let Some((id, time)) = ChangeId::of_head(&value) else {
        count(&shared.tallies.foreign);
        return Err(Broken::Gap(format!("a client outside the fleet has changed its head in revision {revision}")));
    };
    let before = event.prev_kv.as_ref().map_or(0, |before| before.mod_revision);
    let last = lock(&shared.memory).as_ref().map_or(0, |memory| memory.head.revision);
    if before != last {
        count(&shared.tallies.gaps);
        return Err(Broken::Gap(format!(
            "the change before that of revision {revision} is of revision {before}, and the last one that came was of {last}"
        )));
    }
    Ok((id, time, Head { revision, value }))
}

fn apply_token(
    shared: &Shared,
    known: &Known,
    id: TokenId,
    kv: &KeyValue,
    event: &Event,
    is_by_fleet: bool,
) -> Result<(), Broken> {
    let is_deleted = event.kind == DELETION;
    let end = if is_by_fleet && !is_deleted { shared.secret.end(id, kv) } else { None };
    let before = event.prev_kv.as_ref().and_then(|before| shared.secret.end(id, before));
    let hash = shared.secret.hash(id);
    if let Some(end) = end {
        // Of a token in dispute, the filter still has the entry that it had before.
        let before = shared.disputes.settle(id, kv.mod_revision).or(before);
        if end > 0 {
            known.put(hash, end, before)?;
        } else if let Some(before) = before {
            known.remove(hash, before);
        }
        return Ok(());
    }
    // If etcd can't say any more what was there, the filter may know it.
    let perhaps = || {
        let is_in = event.prev_kv.is_none() && known.filter.by_hash().contains(hash);
        is_in.then(|| shared.clock.latest() + shared.settings.longest())
    };
    // If its end is over, its lease was.
    if let Some(end) = shared.disputes.end(id).or(before).or_else(perhaps).filter(|end| shared.is_live(*end)) {
        count(&shared.tallies.foreign);
        tracing::error!(
            %id,
            "a client outside the fleet has changed or deleted the record of a revoked token; requests with it get 503 until \
             it is revoked again"
        );
        shared.disputes.open(id, end, kv.mod_revision, |end| shared.is_live(end));
    } else if !is_deleted {
        shared.damaged(id);
    }
    Ok(())
}
