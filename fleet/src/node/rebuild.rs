//! Rebuilds a filter from the record in the engine, where neither a snapshot nor the log is enough.
//!
//! The record changes while it is read. So the head is asked for before and after. A token that was not touched in
//! between has its right entry. The messages in between say which tokens were touched, and what became of them last.
//! The number of entries must be the number that the engine counts at that head. If anything is missing, the next
//! attempt begins anew.

use std::collections::HashMap;

use super::Core;
use super::apply::apply;
use super::joining::Error;
use super::settings::Filter;
use crate::change::{Change, Tick};
use crate::log::{Head, Place};

/// How many entries are applied at once.
const AT_ONCE: usize = 4096;

pub(super) fn rebuild(node: &Core, before: Head) -> Result<(Filter, Place), Error> {
    let progress = |what: String| node.standing().progress(node.clock.now(), what);
    progress("no snapshot is good, and the log alone is not enough: it reads the record".into());
    let mut ends: HashMap<u64, Tick> = HashMap::new();
    let mut cursor = 0;
    loop {
        let (next, records) = node.block(node.engine.records(before.place, cursor))?;
        ends.extend(records.into_iter().map(|(token, end)| (node.hasher.hash_bytes(&token.0), end)));
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    let after = node.block(node.engine.word(before.place, node.latest()))?;
    node.allows(after.tick).map_err(Error::Other)?;
    let mut place = before.place;
    while place.position < after.place.position {
        let messages = node.block(node.engine.read(place, std::time::Duration::ZERO))?;
        let more = messages.into_iter().take_while(|message| message.place.position <= after.place.position);
        let from = place;
        for message in more {
            place = message.place;
            for change in message.changes {
                match change {
                    Change::Insert { hash, end } | Change::Extend { hash, to: end, .. } => _ = ends.insert(hash, end),
                    Change::Remove { hash, .. } => _ = ends.remove(&hash),
                    Change::Tick { .. } => {}
                }
            }
        }
        if place == from {
            return Err(Error::Other("the log was trimmed while the record was read; it tries again".into()));
        }
    }
    if place != after.place {
        return Err(Error::Other("the log has gone another way while the record was read; it tries again".into()));
    }
    // An entry that has expired is in no filter.
    ends.retain(|_, end| *end > after.tick);
    if ends.len() as u64 != after.live {
        let (found, live) = (ends.len(), after.live);
        return Err(Error::Other(format!("the record has {found} live tokens, and the log {live}; it tries again")));
    }
    let filter = node.settings.filter().map_err(|error| Error::Other(error.to_string()))?;
    let mut changes = vec![Change::Tick { now: after.tick }];
    changes.extend(ends.into_iter().map(|(hash, end)| Change::Insert { hash, end }));
    for some in changes.chunks(AT_ONCE) {
        apply(&filter, some, &node.left_out).map_err(Error::Other)?;
    }
    Ok((filter, place))
}
