//! What an event of the watch does to the filter.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crate::etcd::messages::event::Kind;
use crate::etcd::messages::{Event, WatchResponse};
use crate::filter::{Known, NoRoom};
use crate::keys::ChangeId;
use crate::shared::{Head, Shared, count, lock};

/// How many of the last heads are kept, to compare them with the cluster's word.
const HEADS: usize = 4096;

/// Applies all events of a message, one revision after the other.
pub(crate) fn apply(
    shared: &Shared,
    heads: &mut VecDeque<Head>,
    known: &Known,
    message: &WatchResponse,
) -> Result<(), NoRoom> {
    let at = |event: &Event| event.kv.as_ref().map_or(0, |kv| kv.mod_revision);
    for events in message.events.chunk_by(|one, other| at(one) == at(other)) {
        let revision = events.first().map_or(0, at);
        if revision <= known.applied() {
            continue;
        }
        apply_revision(shared, heads, known, revision, events)?;
    }
    Ok(())
}

fn apply_revision(
    shared: &Shared,
    heads: &mut VecDeque<Head>,
    known: &Known,
    revision: i64,
    events: &[Event],
) -> Result<(), NoRoom> {
    let (head_key, others) = (shared.names.head(), [shared.names.history(), shared.names.agreement()]);
    let head = events.iter().filter(|event| event.kind() == Kind::Put).filter_map(|event| event.kv.as_ref());
    let head = head.filter(|kv| kv.key == head_key).map(|kv| kv.value.to_vec()).next();
    let change = head.as_deref().and_then(ChangeId::of_head);
    let mut missing = Vec::new();
    for event in events {
        let Some(kv) = &event.kv else { continue };
        let Some(id) = shared.names.id(&kv.key) else {
            if kv.key != head_key && !others.iter().any(|key| kv.key == *key) || kv.key == head_key && change.is_none()
            {
                count(&shared.tallies.foreign);
                tracing::error!(key = %kv.key.escape_ascii(), "somebody else changes keys of the fleet");
            }
            continue;
        };
        let before = event.prev_kv.as_ref().and_then(|before| shared.secret.end(id, &before.value));
        let hash = shared.secret.hash(id);
        match event.kind() {
            Kind::Put => match shared.secret.end(id, &kv.value) {
                Some(end) => {
                    known.put(&shared.settings, hash, end, before.or_else(|| known.entry_of_missing(id)))?;
                    known.found(id);
                }
                None => {
                    count(&shared.tallies.foreign);
                    tracing::error!(%id, "nobody of the fleet has written this record; requests of its token get 503");
                }
            },
            // A node has restored it.
            Kind::Delete if change.is_some() => {
                if let Some(before) = before {
                    known.remove(&shared.settings, hash, before);
                }
                known.forget(id);
            }
            // Its lease has ended, or somebody has deleted it.
            Kind::Delete => match before.filter(|end| shared.is_live(*end)) {
                Some(end) if takes!(shared.settings, Mend) => {
                    count(&shared.tallies.foreign);
                    count(&shared.tallies.mended);
                    tracing::error!(%id, "somebody has deleted the record of a revoked token; it is put back");
                    missing.push((id, end));
                }
                _ => {}
            },
        }
    }
    known.miss(&missing);
    if let Some(memory) = &mut *lock(&shared.memory) {
        memory.revision = revision;
        if let Some(value) = &head {
            memory.head = Head { revision, value: value.clone() };
        } else if events.iter().filter_map(|event| event.kv.as_ref()).any(|kv| kv.key == head_key) {
            memory.head = Head::default();
        }
    }
    known.has_applied(revision);
    if let Some(value) = head {
        if heads.len() == HEADS {
            heads.pop_front();
        }
        heads.push_back(Head { revision, value });
    }
    if let Some((id, time)) = change {
        count(&shared.tallies.changes);
        if let Some(waits) = lock(&shared.pending).remove(&id) {
            _ = waits.send(revision);
        } else if known.is_fresh(&shared.clock) {
            let difference = time as i64 - shared.clock.latest() as i64;
            shared.tallies.clock_difference.store(difference, Ordering::Relaxed);
        }
    }
    Ok(())
}
