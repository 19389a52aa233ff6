//! What an event of the watch does to the filter.

use std::sync::atomic::Ordering;

use crate::etcd::messages::{Event, KeyValue, WatchResponse};
use crate::filter::{Known, NoRoom};
use crate::keys::{ChangeId, TokenId};
use crate::lock;
use crate::shared::{Head, Shared, count};

/// The kind of an event that is no put.
const DELETION: i32 = 1;

/// Applies all events of a message, one revision after the other.
pub(crate) fn apply(shared: &Shared, known: &Known, message: &WatchResponse) -> Result<(), NoRoom> {
    let at = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
    for events in message.events.chunk_by(|one, other| at(one) == at(other)) {
        let revision = at(&events[0]);
        if shared.applied().is_some_and(|applied| revision > applied) {
            apply_revision(shared, known, revision, events)?;
        }
    }
    Ok(())
}

fn apply_revision(shared: &Shared, known: &Known, revision: i64, events: &[Event]) -> Result<(), NoRoom> {
    let (head_key, others) = (shared.names.head(), [shared.names.history(), shared.names.agreement()]);
    let of_head = events.iter().find(|event| event.kv.as_ref().is_some_and(|kv| kv.key == head_key));
    let head = of_head.map(|event| match &event.kv {
        Some(kv) if event.kind != DELETION => Head { revision, value: kv.value.to_vec() },
        _ => Head::default(),
    });
    let change = head.as_ref().and_then(|head| ChangeId::of_head(&head.value));
    for event in events {
        let Some(kv) = &event.kv else { continue };
        let is_ours = kv.key == head_key && change.is_some() || others.iter().any(|key| kv.key == *key);
        if let Some(id) = shared.names.id(&kv.key) {
            apply_token(shared, known, id, kv, event)?;
        } else if !is_ours {
            count(&shared.tallies.foreign);
            tracing::error!(key = %kv.key.escape_ascii(), "somebody else changes keys of the fleet");
        }
    }
    if let Some(memory) = &mut *lock(&shared.memory) {
        memory.revision = revision;
        memory.head = head.unwrap_or_else(|| memory.head.clone());
    }
    if let Some((id, time)) = change {
        count(&shared.tallies.changes);
        if let Some(waits) = lock(&shared.pending).get(&id) {
            waits.send_modify(|revisions| revisions.push(revision));
        } else if known.is_fresh() {
            let difference = time as i64 - shared.clock.latest() as i64;
            shared.tallies.clock_difference.store(difference, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn apply_token(shared: &Shared, known: &Known, id: TokenId, kv: &KeyValue, event: &Event) -> Result<(), NoRoom> {
    let before = event.prev_kv.as_ref().and_then(|before| shared.secret.end(id, &before.value));
    let hash = shared.secret.hash(id);
    let is_deleted = event.kind == DELETION;
    match shared.secret.end(id, &kv.value) {
        _ if is_deleted => {}
        Some(0) => {
            if let Some(before) = before {
                known.remove(hash, before);
            }
            known.forget(id);
            return Ok(());
        }
        Some(end) => return known.put(hash, end, before.or_else(|| known.found(id))),
        None => shared.damaged(id),
    }
    // If its end is over, its lease was. If what is deleted can't be read, the node may know what was there before.
    if let Some(end) = before.or_else(|| known.missing_end(id)).filter(|end| shared.is_live(*end)) {
        if is_deleted {
            count(&shared.tallies.foreign);
        }
        count(&shared.tallies.mended);
        tracing::error!(%id, "somebody has deleted or overwritten the record of a revoked token; it is put back");
        known.miss(id, end, if is_deleted { 0 } else { kv.mod_revision });
    }
    Ok(())
}
