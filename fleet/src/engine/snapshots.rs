//! CONCURRENT: snapshots in Redis. Each snapshot is a hash of numbered chunks. The list is a hash of what the
//! engine knows about them.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::RedisEngine;
use super::link::Question;
use crate::log::{Chain, EngineError, Epoch, NEVER, Place, SnapshotInfo, Snapshots};

/// How long the chunks of an unfinished snapshot are kept after the last one.
const UNFINISHED: Duration = Duration::from_secs(600);

/// The stored description of a snapshot.
#[derive(Deserialize, Serialize)]
struct Known {
    epoch: u64,
    position: u64,
    chain: u64,
    bytes: u64,
    digest: u64,
    at: u64,
    node: String,
}

impl RedisEngine {
    /// All snapshots that are listed, also those of another log. An entry that can't be decoded has `None`.
    async fn listed(&self) -> Result<Vec<(String, Option<SnapshotInfo>)>, EngineError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(self.inner.key("snapshots"));
        let all: HashMap<String, Vec<u8>> = self.inner.link.ask(Question::Command(&command)).await?;
        let info = |key: &str, known: &[u8]| {
            let Known { epoch, position, chain, bytes, digest, at, node } = serde_json::from_slice(known).ok()?;
            let place = Place { epoch: Epoch(epoch), position, chain: Chain(chain) };
            Some(SnapshotInfo { place, bytes, digest, at, node, key: key.to_owned() })
        };
        Ok(all.into_iter().map(|(key, known)| (info(&key, &known), key)).map(|(info, key)| (key, info)).collect())
    }

    async fn hold(&self, node: &str, milliseconds: u128) -> Result<bool, EngineError> {
        let mut call = self.inner.scripts.lease.key(self.inner.key("lease"));
        call.arg(node).arg(milliseconds as u64);
        self.inner.link.ask(Question::Script(&call)).await
    }
}

#[async_trait]
impl Snapshots for RedisEngine {
    async fn list(&self, epoch: Epoch) -> Result<Vec<SnapshotInfo>, EngineError> {
        let mut infos: Vec<_> = self.listed().await?.into_iter().filter_map(|(_, info)| info).collect();
        infos.retain(|info| info.place.epoch == epoch);
        infos.sort_by_key(|info| std::cmp::Reverse((info.place.position, info.at)));
        Ok(infos)
    }

    async fn chunk(&self, key: &str, number: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let mut command = redis::cmd("HGET");
        command.arg(self.inner.key(&format!("snapshot:{key}"))).arg(number);
        self.inner.link.ask(Question::Command(&command)).await
    }

    async fn put(&self, place: Place, key: &str, number: usize, chunk: Vec<u8>) -> Result<(), EngineError> {
        let unfinished = UNFINISHED.as_secs().to_string().into_bytes();
        let arguments = vec![key.as_bytes().to_vec(), number.to_string().into_bytes(), chunk, unfinished];
        self.inner.ask(&self.inner.scripts.chunk, place, NEVER, arguments).await.map(drop)
    }

    async fn finish(&self, info: &SnapshotInfo, chunks: usize, keep: usize) -> Result<(), EngineError> {
        let SnapshotInfo { place, bytes, digest, at, ref node, ref key } = *info;
        let Place { epoch, position, chain } = place;
        let node = node.clone();
        let known = Known { epoch: epoch.0, position, chain: chain.0, bytes, digest, at, node };
        let known = serde_json::to_string(&known).map_err(|error| EngineError::Refused(error.to_string()))?;
        let arguments = [key.clone(), chunks.to_string(), known].map(String::into_bytes).to_vec();
        if self.inner.ask(&self.inner.scripts.finish, place, NEVER, arguments).await?.word != "done" {
            return Err(EngineError::Damaged(format!("the engine has not kept all of the snapshot's {chunks} chunks")));
        }
        let kept = self.list(epoch).await?;
        for (key, _) in self.listed().await? {
            if !kept.iter().take(keep).any(|info| info.key == key) {
                self.forget(&key).await?;
            }
        }
        Ok(())
    }

    async fn forget(&self, key: &str) -> Result<(), EngineError> {
        // First from the list: a node must not find a snapshot without its chunks.
        let (mut from_list, mut chunks) = (redis::cmd("HDEL"), redis::cmd("UNLINK"));
        from_list.arg(self.inner.key("snapshots")).arg(key);
        chunks.arg(self.inner.key(&format!("snapshot:{key}")));
        self.inner.link.ask::<()>(Question::Command(&from_list)).await?;
        self.inner.link.ask(Question::Command(&chunks)).await
    }

    async fn lease(&self, node: &str, time: Duration) -> Result<bool, EngineError> {
        self.hold(node, time.as_millis()).await
    }

    async fn give_back(&self, node: &str) -> Result<(), EngineError> {
        self.hold(node, 0).await.map(drop)
    }
}
