//! CONCURRENT: the log in Redis.

use std::collections::HashMap;
use std::time::Duration;

use redis::{Cmd, ScriptInvocation};

use super::answer::{text, unexpected};
use super::follower::RedisFollower;
use super::{Answer, Inner, RedisEngine, wire};
use crate::change::{Agreement, Proposal, TokenId};
use crate::log::{Appended, EngineError, Epoch, Follower, Head, Log, MessageId, NEVER, Place};

/// How long digests are kept. Nodes that are behind reach their place later.
const DIGESTS: Duration = Duration::from_secs(3600);

impl RedisEngine {
    /// The script call that appends these proposals.
    fn append_call(&self, known: Place, id: MessageId, proposals: &[Proposal], before: u64) -> ScriptInvocation<'_> {
        let inner = &*self.inner;
        let mut call = inner.on_the_log(&inner.scripts.append, known);
        call.key(inner.append_keys(id, proposals)).arg(&inner.append_arguments(proposals, before)[..]);
        call
    }

    /// The same as a command that can be sent together with others, before its answer has come. The engine must
    /// have the script. It has it once this script was called before on any connection.
    pub(crate) fn append_command(&self, known: Place, id: MessageId, proposals: &[Proposal]) -> Cmd {
        let inner = &*self.inner;
        let (log, keys) = (inner.keys.of_the_log(), inner.append_keys(id, proposals));
        let mut command = redis::cmd("EVALSHA");
        command.arg(inner.scripts.append.get_hash()).arg(log.len() + keys.len()).arg(&log[..]).arg(keys);
        command
            .arg(&known.epoch.0.to_le_bytes()[..])
            .arg(known.position)
            .arg(&inner.append_arguments(proposals, NEVER)[..]);
        command
    }
}

impl Inner {
    fn append_keys(&self, id: MessageId, proposals: &[Proposal]) -> Vec<Vec<u8>> {
        let mut keys = vec![self.keys.answer(id)];
        keys.extend(proposals.iter().map(|proposal| {
            let (Proposal::Revoke { token, .. } | Proposal::Restore { token, .. }) = *proposal;
            self.keys.record(token)
        }));
        keys
    }

    fn append_arguments(&self, proposals: &[Proposal], before: u64) -> [Vec<u8>; 3] {
        let window = self.settings.window.as_millis();
        [window.to_string().into_bytes(), wire::proposals(proposals), before.to_string().into_bytes()]
    }
}

impl Log for RedisEngine {
    fn agree(&self, agreement: &Agreement) -> Result<Head, EngineError> {
        let inner = &*self.inner;
        let Agreement { capacity, resolution, longest, .. } = *agreement;
        if resolution.subsec_nanos() != 0 || resolution.is_zero() {
            return Err(EngineError::Refused(format!(
                "a tick of {resolution:?} is not a whole number of seconds; give at least one second"
            )));
        }
        let epoch = getrandom::u64().map_err(|error| EngineError::Refused(format!("no random number: {error}")))?;
        let ours = agreement.to_string();
        let mut call = inner.scripts.agree.prepare_invoke();
        call.key(&inner.keys.of_the_log()[..]).arg(&epoch.to_le_bytes()[..]).arg(&ours);
        call.arg(capacity).arg(resolution.as_secs()).arg(longest);
        let mut answer = Answer::new(inner.connections.ask(|connection| call.invoke(connection))?)?;
        if answer.word == "disagreement" {
            let theirs = String::from_utf8_lossy(&answer.bytes()?).into_owned();
            return Err(EngineError::Disagreement { ours, theirs });
        }
        answer.head()
    }

    fn concerns(&self) -> Result<Vec<String>, EngineError> {
        let asked: Result<HashMap<String, String>, _> = self.inner.connections.ask(|connection| {
            let mut command = redis::cmd("CONFIG");
            command.arg("GET").arg("appendonly").arg("appendfsync").arg("no-appendfsync-on-rewrite").arg("maxmemory*");
            command.query(connection)
        });
        let settings = match asked {
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

    fn head(&self, epoch: Epoch) -> Result<Head, EngineError> {
        let known = Place { epoch, position: 0 };
        self.inner.run(&self.inner.on_the_log(&self.inner.scripts.head, known), known)?.head()
    }

    fn append_before(
        &self,
        known: Place,
        id: MessageId,
        proposals: &[Proposal],
        before: u64,
    ) -> Result<Appended, EngineError> {
        let mut answer = self.inner.run(&self.append_call(known, id, proposals, before), known)?;
        if answer.word == "late" {
            return Err(EngineError::TooLate { before, now: answer.number()? });
        }
        let appended = wire::appended(&answer.bytes()?)?;
        if appended.outcomes.len() == proposals.len() {
            Ok(appended)
        } else {
            Err(EngineError::Refused("the identifier was used for another message before".into()))
        }
    }

    fn append_tick(&self, known: Place) -> Result<Head, EngineError> {
        self.inner.run(&self.inner.on_the_log(&self.inner.scripts.tick, known), known)?.head()
    }

    fn follow(&self, after: Place) -> Result<Box<dyn Follower>, EngineError> {
        Ok(Box::new(RedisFollower::new(self.clone(), after)))
    }

    fn revoked_until(&self, known: Place, token: TokenId) -> Result<Option<u64>, EngineError> {
        let inner = &*self.inner;
        let mut call = inner.on_the_log(&inner.scripts.revoked, known);
        call.key(inner.keys.record(token));
        match inner.run(&call, known)?.next() {
            redis::Value::Nil => Ok(None),
            redis::Value::Int(until) => Ok(u64::try_from(until).ok()),
            other => Err(unexpected(&other)),
        }
    }

    fn trim(&self, through: Place) -> Result<(), EngineError> {
        self.inner.run(&self.inner.on_the_log(&self.inner.scripts.trim, through), through).map(drop)
    }

    fn compare(&self, at: Place, node: &str, digest: u64) -> Result<Vec<(String, u64)>, EngineError> {
        let inner = &*self.inner;
        let mut call = inner.on_the_log(&inner.scripts.compare, at);
        call.key(inner.keys.digests(at.epoch, at.position)).arg(node).arg(digest).arg(DIGESTS.as_secs());
        let mut values = inner.run(&call, at)?.values()?.into_iter();
        let mut said = Vec::new();
        while let Some(node) = values.next() {
            let digest = values.next().and_then(text).and_then(|digest| digest.parse().ok());
            let (Some(node), Some(digest)) = (text(node), digest) else {
                return Err(EngineError::Damaged(format!("a digest of position {} is not one", at.position)));
            };
            said.push((node, digest));
        }
        said.sort();
        Ok(said)
    }
}
