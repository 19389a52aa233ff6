//! CONCURRENT: a follower of the log in Redis. It waits for messages on a connection of its own.

use std::time::Duration;

use redis::{Connection, Value};

use super::answer::{bytes, text, unexpected};
use super::{Answer, RedisEngine, wire};
use crate::change::Position;
use crate::engine::Step;
use crate::log::{EngineError, Epoch, Follower, Message, Place};

/// How many messages are asked for at once.
const AT_ONCE: usize = 1000;

pub(super) struct RedisFollower {
    engine: RedisEngine,
    connection: Option<Connection>,
    after: Place,
    /// The message at that place, as it was read. On a new connection it must still be the same. An engine that has
    /// lost its last moments, or another machine that has taken its place, may have given this number to another
    /// message.
    last: Option<Vec<u8>>,
}

impl RedisFollower {
    pub(super) fn new(engine: RedisEngine, after: Place) -> Self {
        Self { engine, connection: None, after, last: None }
    }

    /// The messages that the engine has. If it returns none, no message is missing.
    fn look(&mut self, connection: &mut Connection) -> Result<Vec<Message>, EngineError> {
        let inner = &*self.engine.inner;
        let mut call = inner.on_the_log(&inner.scripts.follow, self.after);
        call.arg(AT_ONCE);
        let value = call.invoke(connection).map_err(|error| inner.connections.engine_error(&error))?;
        let mut answer = Answer::new(value)?.of(self.after)?;
        let (head, first) = (answer.number()?, answer.number()?);
        let (entries, mut last) = (answer.values()?, answer.values()?);
        if let (Some(ours), Some(theirs)) = (&self.last, last.pop()) {
            let (_, _, theirs) = entry(theirs)?;
            if *ours != theirs && self.engine.takes(Step::SameLast) {
                let found = Some(Place { epoch: self.after.epoch, position: head });
                return Err(EngineError::AnotherLog { expected: self.after, found });
            }
        }
        if entries.is_empty() && head > self.after.position && self.engine.takes(Step::SilentGap) {
            return Err(EngineError::Gap { position: self.after.position, first });
        }
        self.take(entries)
    }

    /// Reads on the connection, and waits up to `wait` for the first message.
    fn wait(&mut self, connection: &mut Connection, wait: Duration) -> Result<Vec<Message>, EngineError> {
        let connections = &self.engine.inner.connections;
        let failed = |error| connections.engine_error(&error);
        connection.set_read_timeout(Some(connections.timeout() + wait)).map_err(failed)?;
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(AT_ONCE);
        // The engine takes 0 to mean forever.
        if wait.as_millis() > 0 {
            command.arg("BLOCK").arg(wait.as_millis() as u64);
        }
        command.arg("STREAMS").arg(self.engine.inner.keys.log()).arg(format!("{}-0", self.after.position));
        let value = command.query(connection).map_err(failed)?;
        connection.set_read_timeout(Some(connections.timeout())).map_err(failed)?;
        match entries(value)? {
            // No message to read: either there is none, or it was trimmed, or the log is another one.
            entries if entries.is_empty() => self.look(connection),
            entries => self.take(entries),
        }
    }

    /// The messages, if they are the next ones.
    fn take(&mut self, entries: Vec<Value>) -> Result<Vec<Message>, EngineError> {
        let mut messages = Vec::with_capacity(entries.len());
        let mut place = self.after;
        let mut last = None;
        for value in entries {
            let (position, epoch, payload) = entry(value)?;
            if epoch != place.epoch && self.engine.takes(Step::Epoch) {
                return Err(EngineError::AnotherLog { expected: place, found: Some(Place { epoch, position }) });
            }
            if position != place.position + 1 && self.engine.takes(Step::NextNumber) {
                return Err(EngineError::Gap { position: place.position, first: position });
            }
            let (at, changes) = wire::message(position, &payload)?;
            messages.push(Message { position, changes, at });
            place.position = position;
            last = Some(payload);
        }
        if last.is_some() {
            (self.after, self.last) = (place, last);
        }
        Ok(messages)
    }
}

impl Follower for RedisFollower {
    fn next(&mut self, wait: Duration) -> Result<Vec<Message>, EngineError> {
        let mut messages = Vec::new();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = self.engine.inner.connections.connect()?;
                messages = self.look(&mut connection)?;
                connection
            }
        };
        if messages.is_empty() {
            messages = self.wait(&mut connection, wait)?;
        }
        // After an error the connection is not used again: its answer may still come.
        self.connection = Some(connection);
        Ok(messages)
    }
}

/// The entries of the one stream that was read.
fn entries(value: Value) -> Result<Vec<Value>, EngineError> {
    let Value::Array(streams) = value else {
        return if value == Value::Nil { Ok(Vec::new()) } else { Err(unexpected(&value)) };
    };
    match streams.into_iter().next() {
        Some(Value::Array(mut stream)) => match stream.pop() {
            Some(Value::Array(entries)) => Ok(entries),
            other => Err(unexpected(&other.unwrap_or(Value::Nil))),
        },
        other => Err(unexpected(&other.unwrap_or(Value::Nil))),
    }
}

/// An entry of the stream: its number, the name of its only field, and the content of that field.
fn entry(value: Value) -> Result<(Position, Epoch, Vec<u8>), EngineError> {
    let read = || {
        let Value::Array(parts) = value else { return None };
        let [id, Value::Array(fields)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
        let [field, payload] = <[Value; 2]>::try_from(fields).ok()?;
        let position = text(id)?.strip_suffix("-0")?.parse().ok()?;
        let epoch = Epoch(u64::from_le_bytes(bytes(field)?.try_into().ok()?));
        Some((position, epoch, bytes(payload)?))
    };
    read().ok_or_else(|| EngineError::Damaged("the stream has an entry that no node has written".into()))
}
