//! How a node gets a filter: from the newest good snapshot, or from the log alone if the log goes back to its
//! beginning.
//!
//! A snapshot is good if all of this holds: it is whole; it was made with the same schema, key and settings; it
//! fits in the memory limit; it has the position and the digest that were noted with it; and the log still has
//! everything after it. A snapshot that is not good is passed over, and the one before it is tried.

use std::io::Read;

use super::life::Life;
use super::settings::{Filter, shape};
use super::step::Step;
use super::{Node, known::Known, lock};
use crate::log::{Follower, Head, Place, SnapshotInfo};

/// A filter that will follow the log from its place on.
pub(crate) struct Joined {
    pub(crate) life: Life,
    pub(crate) follower: Box<dyn Follower>,
    /// The snapshot that the filter comes from, if there is one.
    pub(crate) origin: Option<SnapshotInfo>,
}

/// Loads a filter, or returns why that can't be done now. `suspect` is the snapshot of an earlier filter that
/// differed, so any other good one is preferred.
pub(crate) fn join(node: &Node, suspect: Option<SnapshotInfo>) -> Result<Joined, String> {
    let say = |error: crate::log::EngineError| error.to_string();
    let head = node.engine.agree(&node.settings.agreement()).map_err(say)?;
    *lock(&node.known) = Some(Known::new(head, node.clock.now()));
    let mut snapshots = node.engine.list(head.epoch).map_err(say)?;
    *lock(&node.snapshot) = snapshots.first().cloned();
    node.snapshot_at.store(snapshots.first().map_or(0, |info| info.at), std::sync::atomic::Ordering::Relaxed);
    let number = snapshots.len();
    let suspects: Vec<_> = snapshots.extract_if(.., |info| Some(&*info) == suspect.as_ref()).collect();

    let (filter, position, origin) = match newest(node, head, &snapshots) {
        Some(loaded) => loaded,
        None if head.first == 1 => {
            let filter = node.settings.filter().map_err(|error| format!("the filter can't be built: {error}"))?;
            (filter, 0, None)
        }
        None => newest(node, head, &suspects).ok_or_else(|| {
            let first = head.first;
            format!(
                "none of {number} snapshots is good, and the log alone is not enough, because it begins at {first} \
                 instead of 1"
            )
        })?,
    };
    let place = Place { epoch: head.epoch, position };
    let from = origin.as_ref().map_or("the log alone".into(), |info| format!("the snapshot of {}", info.node));
    let why = format!("from {from}, at position {position}; it applies the log, which goes up to {}", head.position);
    node.say(&format!("joins {why}"));
    node.standing().progress(node.clock.now(), why);
    let follower = node.engine.follow(place).map_err(say)?;
    let life = Life::new(place, filter, node.settings.stale_after, node.left_out.clone());
    Ok(Joined { life, follower, origin })
}

type Loaded = (Filter, u64, Option<SnapshotInfo>);

/// Loads the newest of these snapshots that is good.
fn newest(node: &Node, head: Head, snapshots: &[SnapshotInfo]) -> Option<Loaded> {
    for info in snapshots {
        let why =
            format!("loads the snapshot of {} at position {}, {} bytes", info.node, info.place.position, info.bytes);
        node.standing().progress(node.clock.now(), why);
        match load(node, head, info) {
            Ok(filter) => return Some((filter, info.place.position, Some(info.clone()))),
            Err(why) => {
                node.tallies.passed_over.add(1);
                let place = info.place.position;
                node.say(&format!("the snapshot of {} at position {place} is passed over: {why}", info.node));
                if node.left_out.has(Step::PassOver) {
                    return None;
                }
            }
        }
    }
    None
}

fn load(node: &Node, head: Head, info: &SnapshotInfo) -> Result<Filter, String> {
    let position = info.place.position;
    if position > head.position {
        return Err(format!("the log ends before it, at {}", head.position));
    }
    if position + 1 < head.first {
        return Err(format!("the log begins at {}, so what follows the snapshot is gone", head.first));
    }
    let mut reader = node.engine.read(info).map_err(|error| error.to_string())?;
    let loaded = node.settings.loader().read(&mut reader).map_err(|error| error.to_string())?;
    if reader.read(&mut [0]).map_err(|error| error.to_string())? != 0 {
        return Err("it has more bytes after its end".into());
    }
    if loaded.position != Some(position) {
        return Err(format!("its content is of position {:?}", loaded.position));
    }
    let wanted = node.settings.filter().map_err(|error| error.to_string())?;
    if shape(&loaded.filter) != shape(&wanted) {
        return Err("it is made for another capacity, rate or lifetime".into());
    }
    let digest = loaded.filter.digest().map_err(|error| error.to_string())?;
    if digest != info.digest && !node.left_out.has(Step::SnapshotDigest) {
        return Err(format!("its digest is {digest:016x}, and {:016x} was noted", info.digest));
    }
    Ok(loaded.filter)
}
