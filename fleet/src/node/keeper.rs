//! The thread that compares digests and writes snapshots, so that the applier need not wait for either.
//!
//! At each tick of the log, the applier takes the state of the filter between two changes. All running nodes take
//! it at the same position.
//!
//! - Each node reports its digest. It asks a few more times for those of the others, because some come later. If a
//!   node differs from the majority, or from any other node if there is no majority after a second, its filter
//!   can't be used any more: its applier joins again.
//! - One node at a time writes a snapshot. It first waits a moment for the others' digests. After the last byte it
//!   asks once more for the others' digests, and only then does the snapshot appear in the list. So a filter that
//!   is known to differ leaves no snapshot.
//! - Then the log is trimmed below the oldest snapshot that is kept, and not below the newest. If the newest is
//!   damaged, the one before it is useful only with all messages that follow it.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::Save;

use super::chunks::{CHUNK, ChunkWriter, checksum};
use super::digest::{Verdict, verdict};
use super::life::{Life, Loss};
use super::step::Step;
use super::{Core, lock};
use crate::log::{EngineError, Place, SnapshotInfo};

/// The state at a position at which all nodes have the same entries.
pub(crate) struct Agreed<'a> {
    pub(crate) place: Place,
    /// By the engine's clock, in milliseconds since 1970.
    pub(crate) at: u64,
    /// The filter at that position, for its digest.
    pub(crate) entries: Save<'a>,
    /// The same once more, if a snapshot is due.
    pub(crate) save: Option<Save<'a>>,
}

/// How often the others' digests are asked for again. The intervals grow from `FIRST_INTERVAL` on.
const ASKED_AGAIN: u32 = 5;
const FIRST_INTERVAL: Duration = Duration::from_millis(250);

/// How long a node waits for others' digests before it writes a snapshot, or when there is no majority.
const FOR_OTHERS: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(50);

/// How long a writer that stops responding keeps others from writing.
const LEASE: Duration = Duration::from_secs(30);

/// Whether a snapshot is due at this time, by the engine's clock.
pub(crate) fn is_due(node: &Core, at: u64) -> bool {
    let newest = node.snapshot_at.load(Ordering::Relaxed);
    at >= newest.saturating_add(node.settings.snapshot_every.as_millis() as u64)
}

pub(crate) fn run<'a>(node: &Core, life: &Life, moments: &Receiver<Agreed<'a>>) {
    let mut keeper = Keeper { node, life, spoke: 0 };
    // The digest to compare again, and how often that was done.
    let mut pending: Option<(Place, u64, u32)> = None;
    loop {
        let wait = pending.map_or(Duration::from_secs(3600), |(_, _, asked)| FIRST_INTERVAL * 2u32.pow(asked));
        match moments.recv_timeout(wait) {
            Ok(Agreed { place, at, entries, save }) => {
                if let Some((place, digest, _)) = pending.take() {
                    keeper.compare(place, digest);
                }
                match entries.digest() {
                    Ok(digest) => {
                        pending = Some((place, digest, 0));
                        keeper.keep(place, at, digest, save);
                    }
                    Err(error) => tracing::warn!(node = node.name, position = place.position, %error, "no digest"),
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some((place, digest, asked)) = pending.take() {
                    keeper.compare(place, digest);
                    pending = (asked + 1 < ASKED_AGAIN).then_some((place, digest, asked + 1));
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct Keeper<'a> {
    node: &'a Core,
    life: &'a Life,
    /// How many nodes had reported last time.
    spoke: usize,
}

impl Keeper<'_> {
    fn keep(&mut self, place: Place, at: u64, digest: u64, save: Option<Save<'_>>) {
        *lock(&self.node.digest) = Some((place.position, digest));
        let before = self.spoke;
        let Some(mut spoke) = self.compare(place, digest) else { return };
        let Some(save) = save else { return };
        let begin = Instant::now();
        while spoke < before && begin.elapsed() < FOR_OTHERS && !self.life.is_lost() {
            thread::sleep(BETWEEN);
            let Some(now) = self.compare(place, digest) else { return };
            spoke = now;
        }
        if let Err(error) = self.write(place, at, digest, save) {
            tracing::warn!(node = self.node.name, position = place.position, error, "no snapshot");
        }
    }

    /// Reports the digest. Returns how many nodes have reported, or `None` if this node's filter can't be trusted.
    fn compare(&mut self, place: Place, digest: u64) -> Option<usize> {
        let Self { node, life, .. } = *self;
        if node.left_out.has(Step::Compare) {
            return Some(1);
        }
        let begin = Instant::now();
        loop {
            if life.is_lost() && !node.left_out.has(Step::NoSnapshotOfDifference) {
                return None;
            }
            let said = match node.block(node.engine.compare(place, &node.name, digest)) {
                Ok(said) => said,
                // Then there is no node to compare with, and no place to write to.
                Err(error) => {
                    node.standing().silence(node.clock.now(), error.to_string());
                    return None;
                }
            };
            self.spoke = said.len();
            match verdict(&node.name, digest, &said) {
                Verdict::Alike => {}
                Verdict::OthersDiffer(named) => {
                    tracing::warn!(node = node.name, position = place.position, named, "other nodes differ");
                }
                // Others may still report, and then there may be a majority. One bad filter should not make all
                // nodes join again.
                Verdict::Undecided(_) if begin.elapsed() < FOR_OTHERS && !life.is_lost() => {
                    thread::sleep(BETWEEN);
                    continue;
                }
                Verdict::Differs(named) | Verdict::Undecided(named) => {
                    life.lose(Loss::Differs(format!("at position {}, {named}", place.position)));
                    return node.left_out.has(Step::NoSnapshotOfDifference).then_some(said.len());
                }
            }
            return Some(said.len());
        }
    }

    fn write(&mut self, place: Place, at: u64, digest: u64, save: Save<'_>) -> Result<(), String> {
        let node = self.node;
        let say = |error: EngineError| error.to_string();
        if !node.block(node.engine.lease(&node.name, LEASE)).map_err(say)? {
            return self.look();
        }
        // Another node may have written one just now, and given the lease back.
        self.look()?;
        let written = if is_due(node, at) { self.write_leased(place, at, digest, save) } else { Ok(()) };
        node.block(node.engine.give_back(&node.name)).map_err(say)?;
        written?;
        self.look()
    }

    fn write_leased(&mut self, place: Place, at: u64, digest: u64, save: Save<'_>) -> Result<(), String> {
        let node = self.node;
        // A different key for each attempt, so that the chunks of two writers never mix.
        let random = getrandom::u64().map_err(|error| error.to_string())?;
        let key = format!("{}:{random:016x}", place.position);
        let mut info = SnapshotInfo { place, bytes: 0, digest, at, node: node.settings.node.clone(), key };
        let written = self.write_chunks(&mut info, save);
        if written.is_err() {
            // If that fails too, the chunks expire by themselves.
            let _ = node.block(node.engine.forget(&info.key));
        }
        written?;
        node.tallies.written.add(1);
        // Always keeps more than the messages after one snapshot: if that snapshot is damaged, the next one is needed.
        if let [_, .., oldest] = &node.block(node.engine.list(place.epoch)).map_err(|error| error.to_string())?[..] {
            node.block(node.engine.trim(oldest.place)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Writes the chunks, reads them back, and puts the snapshot into the list.
    fn write_chunks(&mut self, info: &mut SnapshotInfo, save: Save<'_>) -> Result<(), String> {
        let Self { node, life, .. } = *self;
        let SnapshotInfo { place, digest, .. } = *info;
        let put = |number, chunk| node.block(node.engine.put(place, &info.key, number, chunk));
        let mut writer = ChunkWriter::new(CHUNK, put);
        save.write_to(Leased { node, life, to: &mut writer, renewed: Instant::now() })
            .map_err(|error| error.to_string())?;
        let (bytes, sums) = writer.finish().map_err(|error| error.to_string())?;
        info.bytes = bytes;
        for (number, sum) in sums.iter().enumerate() {
            let chunk = node.block(node.engine.chunk(&info.key, number)).map_err(|error| error.to_string())?;
            if checksum(number, chunk).map_err(|error| error.to_string())? != *sum {
                return Err(format!("chunk {number} was not read back as it was written"));
            }
        }
        if self.compare(place, digest).is_none() {
            return Err("the nodes do not agree on what the filter has".into());
        }
        node.block(node.engine.finish(info, sums.len(), node.settings.snapshots)).map_err(|error| error.to_string())
    }

    /// Finds out which snapshot is the newest.
    fn look(&self) -> Result<(), String> {
        let list = self.node.block(self.node.engine.list(self.life.epoch)).map_err(|error| error.to_string())?;
        let newest = list.into_iter().next();
        self.node.snapshot_at.store(newest.as_ref().map_or(0, |info| info.at), Ordering::Relaxed);
        *lock(&self.node.snapshot) = newest;
        Ok(())
    }
}

/// A writer that renews the lease on the way, and fails when the filter can't be used any more.
struct Leased<'a> {
    node: &'a Core,
    life: &'a Life,
    to: &'a mut dyn Write,
    renewed: Instant,
}

impl Write for Leased<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.life.is_lost() && !self.node.left_out.has(Step::NoSnapshotOfDifference) {
            return Err(io::Error::other("the filter can't be used any more"));
        }
        if self.renewed.elapsed() > LEASE / 3 {
            self.renewed = Instant::now();
            match self.node.block(self.node.engine.lease(&self.node.name, LEASE)) {
                Ok(true) => {}
                Ok(false) => return Err(io::Error::other("another node has the lease by now")),
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
