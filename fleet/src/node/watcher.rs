//! The task that asks the engine again and again for its *word*: where the log ends. By it the node is ready.
//!
//! The question also has the engine's tick appended when it is due. All nodes ask, and the engine appends each tick
//! once.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::life::Loss;
use super::step::Step;
use super::{Core, lock};
use crate::log::{Chain, EngineError, Epoch, Memory, Place};

pub(super) async fn run(node: Arc<Core>) {
    let mut written = None;
    loop {
        ask(&node).await;
        // Time alone may have made the node stale.
        node.standing().now(node.clock.now());
        let memory = node.known().map(|known| known.memory);
        if let (Some(path), Some(memory)) = (&node.settings.place_file, memory)
            && written != Some(memory.place)
        {
            match write(path, memory) {
                Ok(()) => written = Some(memory.place),
                Err(error) => tracing::warn!(node = node.name, %error, path = %path.display(), "the place is not kept"),
            }
        }
        tokio::time::sleep(node.settings.beat()).await;
    }
}

/// Asks once, and passes the answer to the filter.
pub(super) async fn ask(node: &Core) {
    let Some(known) = node.known_place() else { return };
    // Before the request is sent: an answer says nothing about a filter that is loaded later.
    let life = node.life.load_full().filter(|life| life.epoch == known.epoch);
    let sent = node.clock.now();
    let answer = node.engine.word(known, node.latest()).await;
    node.is_silent.store(matches!(answer, Err(EngineError::Unreachable(_))), Ordering::Relaxed);
    let lose = |error: EngineError| {
        if let Some(life) = &life {
            life.lose(Loss::Gap(error.to_string()));
        }
    };
    match answer {
        Ok(head) => {
            let heard = node.hear(head.now, sent);
            if let Err(why) = heard {
                return node.contradiction(|trouble| &mut trouble.clock, why);
            }
            node.trouble(|trouble| &mut trouble.clock, None);
            if let Some(known) = &mut *lock(&node.known)
                && known.memory.place.epoch == head.place.epoch
            {
                if head.foreign > known.head.foreign {
                    let number = head.foreign - known.head.foreign;
                    tracing::error!(
                        node = node.name,
                        number,
                        "the log had messages that no node has written, and they were removed: somebody else writes \
                         into the engine under the fleet's name"
                    );
                }
                known.at(head.place);
                (known.head, known.memory.at) = (head, head.now);
            }
            if let Some(life) = life {
                node.leased(life.word(sent, head.place));
            }
        }
        Err(EngineError::Clock { now, .. }) => {
            let why = node.hear(now, sent).err().unwrap_or_else(|| "the clocks contradict each other".into());
            node.contradiction(|trouble| &mut trouble.clock, why);
        }
        Err(EngineError::AnotherLog { .. }) if node.left_out.has(Step::Chain) => {}
        Err(error @ (EngineError::AnotherLog { .. } | EngineError::Waits(_) | EngineError::Gap { .. })) => lose(error),
        Err(error) => node.standing().silence(node.clock.now(), error.to_string()),
    }
}

/// The place in a file.
#[derive(Deserialize, Serialize)]
struct Kept {
    epoch: u64,
    position: u64,
    chain: u64,
    at: u64,
}

fn write(path: &Path, Memory { place, at }: Memory) -> std::io::Result<()> {
    let Place { epoch: Epoch(epoch), position, chain: Chain(chain) } = place;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, &Kept { epoch, position, chain, at })?;
    file.flush()?;
    file.persist(path)?;
    Ok(())
}

/// What the node knew when it ran last, if it has a file for that.
pub(super) fn remembered(node: &Core) -> Option<Memory> {
    let path = node.settings.place_file.as_ref()?;
    let text = std::fs::read(path).ok()?;
    match serde_json::from_slice(&text) {
        Ok(Kept { epoch, position, chain, at }) => {
            let place = Place { epoch: Epoch(epoch), position, chain: Chain(chain) };
            Some(Memory { place, at })
        }
        Err(error) => {
            tracing::warn!(node = node.name, %error, path = %path.display(), "the kept place can't be read");
            None
        }
    }
}
