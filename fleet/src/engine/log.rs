//! CONCURRENT: the log in Redis.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use redis::Value;

use super::answer::{bytes, text, unexpected};
use super::link::Question;
use super::{LONGEST_WAIT, RedisEngine, wire};
use crate::change::{Agreement, Proposal, Tick, TokenId};
use crate::log::{Appended, EngineError, Epoch, Head, Joining, Log, Message, MessageId, NEVER, Place};

/// How many messages are asked for at once.
const AT_ONCE: usize = 1000;

/// How long digests are kept. Nodes that are behind reach their place later.
const DIGESTS: Duration = Duration::from_secs(3600);

#[async_trait]
impl Log for RedisEngine {
    async fn agree(&self, joining: &Joining<'_>) -> Result<Head, EngineError> {
        let inner = &*self.inner;
        let Agreement { capacity, resolution, longest, .. } = *joining.agreement;
        if resolution.subsec_nanos() != 0 || resolution.is_zero() {
            return Err(EngineError::Refused(format!("a tick of {resolution:?} is not a whole number of seconds")));
        }
        let epoch = getrandom::u64().map_err(|error| EngineError::Refused(format!("no random number: {error}")))?;
        let ours = joining.agreement.to_string();
        let place = joining.memory.map(|memory| memory.place);
        let says = place.map_or(String::new(), |place| format!("node {} knew {place}", joining.node));
        let mut call = inner.on_the_log(&inner.scripts.agree, place, joining.latest);
        call.arg(&epoch.to_le_bytes()[..]).arg(&ours).arg(capacity).arg(resolution.as_secs()).arg(longest);
        call.arg(joining.memory.map_or(0, |memory| memory.at)).arg(u8::from(joining.accepts_loss)).arg(says);
        let mut answer = inner.call(&call).await?;
        if answer.word == "disagreement" {
            let theirs = String::from_utf8_lossy(&answer.bytes()?).into_owned();
            return Err(EngineError::Disagreement { ours, theirs });
        }
        answer.of(place, joining.latest)?.head()
    }

    async fn accept(&self) -> Result<Option<String>, EngineError> {
        let call = self.inner.on_the_log(&self.inner.scripts.accept, None, NEVER);
        let mut answer = self.inner.call(&call).await?;
        if answer.word == "another" {
            return Err(EngineError::Refused("it has no fleet of this name".into()));
        }
        Ok(text(answer.next()))
    }

    async fn concerns(&self) -> Result<Vec<String>, EngineError> {
        let mut command = redis::cmd("CONFIG");
        command
            .arg("GET")
            .arg("appendonly")
            .arg("appendfsync")
            .arg("no-appendfsync-on-rewrite")
            .arg("aof-load-truncated")
            .arg("maxmemory*");
        let asked = self.inner.link.ask(Question::Command(&command)).await;
        let settings: HashMap<String, String> = match asked {
            // The engine does not allow the question. Most hosted engines do not.
            Err(EngineError::Refused(_)) => return Ok(Vec::new()),
            asked => asked?,
        };
        let is = |name: &str, value: &str| settings.get(name).is_none_or(|set| set == value);
        let lost = "a change that was acknowledged can be lost when the engine's machine dies";
        let mut concerns = Vec::new();
        if !is("appendonly", "yes") {
            concerns.push(format!("appendonly is not yes, so {lost}; set it with CONFIG SET appendonly yes"));
        } else if !is("appendfsync", "always") {
            concerns.push(format!("appendfsync is not always, so {lost}; set it with CONFIG SET appendfsync always"));
        } else if !is("no-appendfsync-on-rewrite", "no") {
            concerns.push(format!("no-appendfsync-on-rewrite is not no, so {lost}; set it with CONFIG SET"));
        } else if !is("aof-load-truncated", "no") {
            concerns.push(
                "aof-load-truncated is not no, so a part of a change can come back after the engine was killed in a \
                 write, and the fleet then waits for an operator; set it with CONFIG SET aof-load-truncated no, and run \
                 redis-check-aof before each start (see RUNBOOK.md)"
                    .to_owned(),
            );
        }
        if !is("maxmemory", "0") && !is("maxmemory-policy", "noeviction") {
            concerns.push(
                "maxmemory-policy is not noeviction, so the engine may drop revoked tokens and snapshots when its \
                 memory is full; set it with CONFIG SET maxmemory-policy noeviction"
                    .to_owned(),
            );
        }
        Ok(concerns)
    }

    async fn word(&self, known: Place, latest: u64) -> Result<Head, EngineError> {
        self.inner.ask(&self.inner.scripts.word, known, latest, vec![]).await?.head()
    }

    async fn append(
        &self,
        known: Place,
        MessageId(id): MessageId,
        proposals: &[Proposal],
        before: u64,
        latest: u64,
    ) -> Result<Appended, EngineError> {
        let inner = &*self.inner;
        let mut call = inner.on_the_log(&inner.scripts.append, Some(known), latest);
        call.arg(&id[..]).arg(inner.settings.remember.as_secs_f64()).arg(before).arg(wire::proposals(proposals));
        let mut answer = inner.call(&call).await?.of(Some(known), latest)?;
        if answer.word == "late" {
            return Err(EngineError::TooLate { before, now: answer.number()? });
        }
        let appended = wire::appended(known.epoch, &answer.bytes()?)?;
        if appended.outcomes.len() == proposals.len() {
            Ok(appended)
        } else {
            Err(EngineError::Refused("the identifier was used for another message before".into()))
        }
    }

    async fn read(&self, after: Place, wait: Duration) -> Result<Vec<Message>, EngineError> {
        let mut command = redis::cmd("XREAD");
        command.arg("COUNT").arg(AT_ONCE);
        // The engine takes 0 to mean forever.
        let wait = wait.min(LONGEST_WAIT).as_millis() as u64;
        if wait > 0 {
            command.arg("BLOCK").arg(wait);
        }
        command.arg("STREAMS").arg(self.inner.key("log")).arg(format!("{}-0", after.position));
        let value = self.inner.waiting.ask(Question::Command(&command)).await?;
        let mut messages = Vec::new();
        let mut place = after;
        for value in entries(value)? {
            // One that no script has written is stepped over. `word.lua` removes it, and counts it.
            let Some((position, epoch, payload)) = entry(value) else { continue };
            if epoch != place.epoch && self.takes_epoch() {
                let found = Some(Place { epoch, position, ..place });
                return Err(EngineError::AnotherLog { expected: place, found });
            }
            if position != place.position + 1 && self.takes_numbers() {
                return Err(EngineError::Gap { position: place.position, first: position });
            }
            let message = self.decode(place, position, &payload)?;
            place = message.place;
            messages.push(message);
        }
        Ok(messages)
    }

    async fn revoked_until(&self, known: Place, tokens: &[TokenId]) -> Result<Vec<Option<u64>>, EngineError> {
        let joined: Vec<u8> = tokens.iter().flat_map(|token| token.0).collect();
        let mut answer = self.inner.ask(&self.inner.scripts.revoked, known, NEVER, vec![joined]).await?;
        let until = |value| match value {
            Value::Int(until) => Ok(u64::try_from(until).ok()),
            other => Err(unexpected(&other)),
        };
        let untils: Vec<_> = answer.values()?.into_iter().map(until).collect::<Result<_, _>>()?;
        if untils.len() == tokens.len() { Ok(untils) } else { Err(unexpected(&Value::Nil)) }
    }

    async fn records(&self, known: Place, cursor: u64) -> Result<(u64, Vec<(TokenId, Tick)>), EngineError> {
        let mut answer =
            self.inner.ask(&self.inner.scripts.records, known, NEVER, vec![cursor.to_string().into_bytes()]).await?;
        let next = text(answer.next()).and_then(|next| next.parse().ok()).ok_or_else(|| unexpected(&Value::Nil))?;
        Ok((next, wire::records(&answer.bytes()?)))
    }

    async fn trim(&self, oldest: Place) -> Result<(), EngineError> {
        self.inner.ask(&self.inner.scripts.trim, oldest, NEVER, vec![]).await.map(drop)
    }

    async fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError> {
        let arguments = [node.to_owned(), digest.to_string(), DIGESTS.as_secs().to_string()].map(String::into_bytes);
        let mut answer = self.inner.ask(&self.inner.scripts.compare, at, NEVER, arguments.into()).await?;
        let mut values = answer.values()?.into_iter().map(text);
        let mut said = Vec::new();
        while let Some(node) = values.next() {
            let digest = values.next().flatten().and_then(|digest| digest.parse().ok());
            let (Some(node), Some(digest)) = (node, digest) else {
                return Err(EngineError::Damaged(format!("a digest of position {} is not one", at.position)));
            };
            said.push((node, digest));
        }
        said.sort();
        Ok(said)
    }
}

#[cfg(not(test))]
impl RedisEngine {
    fn takes_epoch(&self) -> bool {
        true
    }

    fn takes_numbers(&self) -> bool {
        true
    }

    fn decode(&self, after: Place, _: u64, payload: &[u8]) -> Result<Message, EngineError> {
        wire::message(after, payload)
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

/// An entry of the stream: its number, the name of its only field, and the content of that field. `None` if no script
/// has written it.
fn entry(value: Value) -> Option<(u64, Epoch, Vec<u8>)> {
    let Value::Array(parts) = value else { return None };
    let [id, Value::Array(fields)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
    let [field, payload] = <[Value; 2]>::try_from(fields).ok()?;
    let position = text(id)?.strip_suffix("-0")?.parse().ok()?;
    let epoch = Epoch(u64::from_le_bytes(bytes(field)?.try_into().ok()?));
    Some((position, epoch, bytes(payload)?))
}
