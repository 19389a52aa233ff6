//! CONCURRENT: snapshots in Redis. Each snapshot is a hash of numbered chunks. The list is a hash of what the
//! engine knows about them.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use redis::Connection;
use serde::{Deserialize, Serialize};

use super::{Answer, Inner, RedisEngine};
use crate::engine::Step;
use crate::engine::chunks::{ChunkReader, ChunkWriter, checksum, engine_error};
use crate::log::{Content, EngineError, Epoch, Log, Place, SnapshotInfo, Snapshots};

/// How long the chunks of an unfinished snapshot are kept after the last one.
const UNFINISHED: Duration = Duration::from_secs(600);

/// The stored description of a snapshot.
#[derive(Deserialize, Serialize)]
struct Known {
    epoch: u64,
    position: u64,
    bytes: u64,
    digest: u64,
    at: u64,
    node: String,
}

impl Inner {
    /// All snapshots that are listed, also those of another log. An entry that can't be decoded has `None`.
    fn listed(&self) -> Result<Vec<(String, Option<SnapshotInfo>)>, EngineError> {
        let all: HashMap<String, Vec<u8>> =
            self.connections.ask(|connection| redis::cmd("HGETALL").arg(self.keys.snapshots()).query(connection))?;
        let info = |key: &str, known: &[u8]| {
            let Known { epoch, position, bytes, digest, at, node } = serde_json::from_slice(known).ok()?;
            let place = Place { epoch: Epoch(epoch), position };
            Some(SnapshotInfo { place, bytes, digest, at, node, key: key.to_owned() })
        };
        Ok(all.into_iter().map(|(key, known)| (info(&key, &known), key)).map(|(info, key)| (key, info)).collect())
    }

    fn chunk(&self, key: &str, number: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let get =
            |connection: &mut Connection| redis::cmd("HGET").arg(self.keys.snapshot(key)).arg(number).query(connection);
        self.connections.ask(get)
    }

    /// Writes a chunk durably.
    fn put(&self, place: Place, key: &str, number: usize, chunk: &[u8]) -> Result<(), EngineError> {
        let mut call = self.on_the_log(&self.scripts.chunk, place);
        call.key(self.keys.snapshot(key)).arg(number).arg(chunk).arg(UNFINISHED.as_secs());
        self.run(&call, place).map(drop)
    }

    /// Puts the snapshot into the list.
    fn finish(&self, info: &SnapshotInfo, chunks: usize) -> Result<(), EngineError> {
        let SnapshotInfo { place, bytes, digest, at, node, key } = info;
        let node = node.clone();
        let (epoch, position) = (place.epoch.0, place.position);
        let known = Known { epoch, position, bytes: *bytes, digest: *digest, at: *at, node };
        let known = serde_json::to_vec(&known).map_err(|error| EngineError::Content(error.into()))?;
        let mut call = self.on_the_log(&self.scripts.finish, *place);
        call.key(self.keys.snapshot(key)).key(self.keys.snapshots()).arg(chunks).arg(key).arg(known);
        let Answer { word, .. } = self.run(&call, *place)?;
        if word == "done" {
            Ok(())
        } else {
            Err(EngineError::Damaged(format!("the engine has not kept all of the {chunks} chunks of the snapshot")))
        }
    }

    fn forget(&self, key: &str) -> Result<(), EngineError> {
        // First from the list: a node must not find a snapshot without its chunks.
        self.connections
            .ask(|connection| redis::cmd("HDEL").arg(self.keys.snapshots()).arg(key).query::<()>(connection))?;
        self.connections.ask(|connection| redis::cmd("UNLINK").arg(self.keys.snapshot(key)).query::<()>(connection))
    }
}

impl RedisEngine {
    /// Writes the chunks, and reads them back.
    fn write_chunks(&self, place: Place, key: &str, content: &mut Content<'_>) -> Result<(u64, usize), EngineError> {
        let inner = &*self.inner;
        let size = inner.settings.chunk;
        let mut writer = ChunkWriter::new(size, |number, chunk| inner.put(place, key, number, &chunk));
        content(&mut writer).map_err(engine_error)?;
        let (bytes, sums) = writer.finish().map_err(engine_error)?;
        let chunks = sums.len();
        for (number, sum) in sums.into_iter().enumerate().filter(|_| self.takes(Step::ReadBack)) {
            if checksum(number, inner.chunk(key, number)?)? != sum {
                return Err(EngineError::Damaged(format!("chunk {number} was not read back as it was written")));
            }
        }
        Ok((bytes, chunks))
    }
}

impl Snapshots for RedisEngine {
    fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError> {
        let mut infos: Vec<_> = self.inner.listed()?.into_iter().filter_map(|(_, info)| info).collect();
        infos.retain(|info| info.place.epoch == epoch);
        infos.sort_by_key(|info| std::cmp::Reverse((info.place.position, info.at)));
        Ok(infos)
    }

    fn read(&self, info: &SnapshotInfo) -> Result<Box<dyn io::Read + Send>, EngineError> {
        let (engine, key) = (self.clone(), info.key.clone());
        let reader = ChunkReader::new(info.bytes, move |number| engine.inner.chunk(&key, number));
        #[cfg(test)]
        if !self.takes(Step::Checksum) {
            return Ok(Box::new(reader.unchecked()));
        }
        Ok(Box::new(reader))
    }

    fn write(
        &self,
        place: Place,
        digest: u64,
        node: &str,
        keep: usize,
        content: &mut Content<'_>,
    ) -> Result<SnapshotInfo, EngineError> {
        let inner = &*self.inner;
        // A different key for each attempt, so that the chunks of two writers never mix.
        let random = getrandom::u64().map_err(|error| EngineError::Refused(format!("no random number: {error}")))?;
        let key = format!("{}:{random:016x}", place.position);
        let mut write = || {
            let (bytes, chunks) = self.write_chunks(place, &key, content)?;
            let at = self.head(place.epoch)?.now;
            let info = SnapshotInfo { place, bytes, digest, at, node: node.to_owned(), key: key.clone() };
            inner.finish(&info, chunks)?;
            Ok(info)
        };
        let info = write().inspect_err(|_| {
            // If that fails too, the chunks expire by themselves.
            _ = inner.forget(&key);
        })?;
        let kept = self.list(place.epoch)?;
        for (key, _) in inner.listed()? {
            if !kept.iter().take(keep).any(|info| info.key == key) {
                inner.forget(&key)?;
            }
        }
        Ok(info)
    }

    fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError> {
        let inner = &*self.inner;
        let mut call = inner.scripts.lease.key(inner.keys.lease());
        call.arg(node).arg(time.as_millis() as u64);
        inner.connections.ask(|connection| call.invoke(connection))
    }

    fn give_back(&self, node: &str) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let mut call = inner.scripts.give_back.key(inner.keys.lease());
        call.arg(node);
        inner.connections.ask(|connection| call.invoke::<()>(connection))
    }
}
