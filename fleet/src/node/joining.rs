//! How a node gets a filter: from the newest good snapshot, from the log alone if the log goes back to its beginning,
//! or else from the record.
//!
//! A snapshot is good if all of this holds: it is whole; it was made with the same schema, key and settings; it
//! fits in the memory limit; it has the position and the digest that were noted with it; its clock is not ahead of
//! this node's; its hash is the one that the log has at its position; and the log still has everything after it. A
//! snapshot that is not good is passed over, and the one before it is tried.

use std::io::Read;

use super::chunks::ChunkReader;
use super::life::Life;
use super::settings::{Filter, shape};
use super::step::Step;
use super::{Core, Known, lock, rebuild};
use crate::change::Tick;
use crate::log::{Chain, EngineError, Head, Joining, Memory, Place, SnapshotInfo};

/// A filter that will follow the log from its place on.
pub(super) struct Joined {
    pub(super) life: Life,
    /// The snapshot that the filter comes from, if there is one.
    pub(super) origin: Option<SnapshotInfo>,
}

/// Why a node can't join now.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("{0}")]
    Other(String),
}

/// Agrees with the fleet, and notes what the engine says.
pub(super) async fn agree(node: &Core, memory: Option<Memory>) -> Result<Head, EngineError> {
    let joining = Joining {
        agreement: &node.settings.agreement(),
        memory,
        accepts_loss: node.settings.accepts_loss,
        latest: node.latest(),
        node: &node.name,
    };
    let asked = node.clock.now();
    let head = node.engine.agree(&joining).await;
    match &head {
        Ok(head) => {
            if let Err(why) = node.hear(head.now, asked) {
                node.contradiction(|trouble| &mut trouble.clock, why);
                return Err(EngineError::Clock { now: head.now, latest: node.latest() });
            }
            node.trouble(|trouble| &mut trouble.clock, None);
            *lock(&node.known) = Some(Known::new(*head));
        }
        Err(EngineError::Clock { now, .. }) => {
            let why = node.hear(*now, asked).err().unwrap_or_else(|| "the clocks contradict each other".into());
            node.contradiction(|trouble| &mut trouble.clock, why);
        }
        Err(_) => {}
    }
    head
}

/// Loads a filter, or returns why that can't be done now. `memory` is what the node knew before. `suspect` is the
/// snapshot of an earlier filter that differed, so any other good one is preferred.
pub(super) fn join(node: &Core, memory: Option<Memory>, suspect: Option<SnapshotInfo>) -> Result<Joined, Error> {
    let head = node.block(agree(node, memory))?;
    node.allows(head.tick).map_err(|why| {
        node.contradiction(|trouble| &mut trouble.tick, why.clone());
        Error::Other(why)
    })?;
    node.trouble(|trouble| &mut trouble.tick, None);
    let mut snapshots = node.block(node.engine.list(head.place.epoch))?;
    *lock(&node.snapshot) = snapshots.first().cloned();
    node.snapshot_at.store(snapshots.first().map_or(0, |info| info.at), std::sync::atomic::Ordering::Relaxed);
    let suspects: Vec<_> = snapshots.extract_if(.., |info| Some(&*info) == suspect.as_ref()).collect();

    let (filter, place, origin) = match newest(node, head, &snapshots) {
        Some(loaded) => loaded,
        None if head.first == 1 => {
            let filter = node.settings.filter().map_err(|error| Error::Other(error.to_string()))?;
            (filter, Place { position: 0, chain: Chain::START, ..head.place }, None)
        }
        None => match newest(node, head, &suspects) {
            Some(loaded) => loaded,
            None => {
                let number = snapshots.len() + suspects.len();
                let first = head.first;
                tracing::warn!(
                    node = node.name,
                    number,
                    first,
                    "none of the snapshots is good, and the log does not begin at 1: the filter is rebuilt from the record"
                );
                let (filter, place) = rebuild::rebuild(node, head)?;
                node.tallies.rebuilt.add(1);
                (filter, place, None)
            }
        },
    };
    let from = match &origin {
        Some(info) => format!("the snapshot of {}", info.node),
        None if place.position == 0 => "the log alone".into(),
        None => "the record".into(),
    };
    let (position, head) = (place.position, head.place.position);
    let why = format!("from {from}, at position {position}; it applies the log, which goes up to {head}");
    tracing::info!(node = node.name, from, position, head, "joins");
    node.standing().progress(node.clock.now(), why);
    let life = Life::new(place, filter, node.settings.stale_after, node.left_out.clone());
    Ok(Joined { life, origin })
}

type Loaded = (Filter, Place, Option<SnapshotInfo>);

/// Loads the newest of these snapshots that is good.
fn newest(node: &Core, head: Head, snapshots: &[SnapshotInfo]) -> Option<Loaded> {
    for info in snapshots {
        let why =
            format!("loads the snapshot of {} at position {}, {} bytes", info.node, info.place.position, info.bytes);
        node.standing().progress(node.clock.now(), why);
        match load(node, head, info) {
            Ok(filter) => return Some((filter, info.place, Some(info.clone()))),
            Err(why) => {
                node.tallies.passed_over.add(1);
                let position = info.place.position;
                tracing::warn!(node = node.name, writer = info.node, position, why, "a snapshot is passed over");
                if node.left_out.has(Step::PassOver) {
                    return None;
                }
            }
        }
    }
    None
}

fn load(node: &Core, head: Head, info: &SnapshotInfo) -> Result<Filter, String> {
    let position = info.place.position;
    if position > head.place.position {
        return Err(format!("the log ends before it, at {}", head.place.position));
    }
    if position + 1 < head.first {
        return Err(format!("the log begins at {}, so what follows the snapshot is gone", head.first));
    }
    let get = |number| node.block(node.engine.chunk(&info.key, number));
    let mut reader = ChunkReader::new(info.bytes, get);
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
    node.allows(loaded.filter.now().and_then(|now| Tick::try_from(now).ok()).unwrap_or(0))?;
    let digest = loaded.filter.digest().map_err(|error| error.to_string())?;
    if digest != info.digest && !node.left_out.has(Step::SnapshotDigest) {
        return Err(format!("its digest is {digest:016x}, and {:016x} was noted", info.digest));
    }
    // Last, so that the log has what follows even if it was trimmed meanwhile.
    match node.block(node.engine.word(info.place, node.latest())) {
        Ok(_) => Ok(loaded.filter),
        Err(error) => Err(error.to_string()),
    }
}
