//! An engine that returns prepared messages, so that only the node is measured.

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use crate::change::{Agreement, Position, Proposal, Tick, TokenId};
use crate::log::{
    Appended, Content, EngineError, Epoch, Follower, Head, Log, Message, MessageId, Place, SnapshotInfo, Snapshots,
};

/// As many messages as one answer of the engine has.
const AT_ONCE: usize = 1000;

const EPOCH: Epoch = Epoch(1);

pub(super) struct Prepared {
    answers: Mutex<Option<Vec<Vec<Message>>>>,
    head: Position,
    tick: Tick,
}

impl Prepared {
    pub(super) fn new(messages: Vec<Message>, tick: Tick) -> Self {
        let head = messages.last().map_or(0, |message| message.position);
        let mut messages = messages.into_iter();
        let mut answers = Vec::new();
        loop {
            let answer: Vec<_> = messages.by_ref().take(AT_ONCE).collect();
            if answer.is_empty() {
                break;
            }
            answers.push(answer);
        }
        answers.reverse();
        Self { answers: Mutex::new(Some(answers)), head, tick }
    }

    fn only_read<T>() -> Result<T, EngineError> {
        Err(EngineError::Refused("it can only be read from".into()))
    }
}

impl Log for Prepared {
    fn agree(&self, _: &Agreement) -> Result<Head, EngineError> {
        self.head(EPOCH)
    }

    fn concerns(&self) -> Result<Vec<String>, EngineError> {
        Ok(Vec::new())
    }

    fn head(&self, epoch: Epoch) -> Result<Head, EngineError> {
        let now = u64::from(self.tick) * 600_000;
        Ok(Head { epoch, position: self.head, first: 1, tick: self.tick, now })
    }

    fn append_before(&self, _: Place, _: MessageId, _: &[Proposal], _: u64) -> Result<Appended, EngineError> {
        Self::only_read()
    }

    fn append_tick(&self, _: Place) -> Result<Head, EngineError> {
        self.head(EPOCH)
    }

    fn follow(&self, _: Place) -> Result<Box<dyn Follower>, EngineError> {
        let answers = self.answers.lock().ok().and_then(|mut answers| answers.take());
        answers.map(|answers| Box::new(Answers(answers)) as Box<_>).map_or_else(Self::only_read, Ok)
    }

    fn revoked_until(&self, _: Place, _: TokenId) -> Result<Option<u64>, EngineError> {
        Self::only_read()
    }

    fn trim(&self, _: Place) -> Result<(), EngineError> {
        Self::only_read()
    }

    fn compare(&self, _: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError> {
        Ok(vec![(node.to_owned(), digest)])
    }
}

struct Answers(Vec<Vec<Message>>);

impl Follower for Answers {
    fn next(&mut self, wait: Duration) -> Result<Vec<Message>, EngineError> {
        Ok(self.0.pop().unwrap_or_else(|| {
            std::thread::sleep(wait);
            Vec::new()
        }))
    }
}

impl Snapshots for Prepared {
    fn list(&self, _: Epoch) -> Result<Vec<SnapshotInfo>, EngineError> {
        Ok(Vec::new())
    }

    fn read(&self, _: &SnapshotInfo) -> Result<Box<dyn io::Read + Send>, EngineError> {
        Self::only_read()
    }

    fn write(&self, _: Place, _: u64, _: &str, _: usize, _: &mut Content<'_>) -> Result<SnapshotInfo, EngineError> {
        Self::only_read()
    }

    fn lease(&self, _: &str, _: Duration) -> Result<bool, EngineError> {
        Ok(false)
    }

    fn give_back(&self, _: &str) -> Result<(), EngineError> {
        Ok(())
    }
}
