//! The engine in Redis 7 or Valkey: a stream, and scripts that make one step of several commands.
//!
//! - `scripts`: the scripts (in Lua, in the folder of this name), and the keys of a fleet;
//! - `wire`: the bytes that they write and read;
//! - `connection`: connections with time limits;
//! - `answer`: decodes a script's answer;
//! - `edits`: scripts with a step left out, for the tests;
//! - `log`, `follower`, `snapshots`: what a node needs from an engine.

mod answer;
mod connection;
#[cfg(test)]
mod edits;
mod follower;
mod log;
mod scripts;
mod snapshots;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use redis::{Script, ScriptInvocation, Value};

use self::answer::Answer;
use self::connection::Connections;
use self::scripts::{Keys, Scripts};
use super::Step;
use super::chunks::CHUNK;
use crate::log::{EngineError, Place};

/// Where the engine is, and how it is used.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Such as `redis://127.0.0.1:6379`.
    pub(crate) url: String,
    /// The name of the fleet. One engine can have several fleets.
    pub(crate) name: String,
    /// How long to wait for an answer.
    pub(crate) timeout: Duration,
    /// How long an identifier is remembered. A sender that gets no answer must give up long before.
    pub(crate) window: Duration,
    /// The size of a snapshot's chunks.
    pub(crate) chunk: usize,
}

impl Settings {
    pub(crate) fn new(url: &str, name: &str) -> Self {
        Self {
            url: url.to_owned(),
            name: name.to_owned(),
            timeout: Duration::from_secs(1),
            window: Duration::from_secs(600),
            chunk: CHUNK,
        }
    }
}

/// A client of an engine in Redis.
#[derive(Clone)]
pub(crate) struct RedisEngine {
    inner: Arc<Inner>,
}

struct Inner {
    settings: Settings,
    connections: Connections,
    keys: Keys,
    scripts: Scripts,
    #[cfg(test)]
    left_out: Vec<Step>,
}

impl RedisEngine {
    /// Does not connect yet.
    pub(crate) fn new(settings: Settings) -> Result<Self, EngineError> {
        Self::with(
            settings,
            Scripts::new(),
            #[cfg(test)]
            Vec::new(),
        )
    }

    fn with(settings: Settings, scripts: Scripts, #[cfg(test)] left_out: Vec<Step>) -> Result<Self, EngineError> {
        let connections = Connections::new(&settings.url, settings.timeout)?;
        let keys = Keys::new(&settings.name);
        let inner = Inner {
            settings,
            connections,
            keys,
            scripts,
            #[cfg(test)]
            left_out,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    #[cfg(not(test))]
    fn takes(&self, _: Step) -> bool {
        true
    }

    /// Whether this engine takes the step.
    #[cfg(test)]
    fn takes(&self, step: Step) -> bool {
        !self.inner.left_out.contains(&step)
    }

    /// Leaves steps out, and reads the time from a key, in milliseconds since 1970.
    #[cfg(test)]
    pub(crate) fn edited(settings: Settings, left_out: &[Step], has_set_time: bool) -> Result<Self, EngineError> {
        let scripts = Scripts::edited(|text| edits::edit(text, left_out, has_set_time));
        Self::with(settings, scripts, left_out.to_vec())
    }
}

impl Inner {
    /// A call of a script on the log, with the keys and arguments that all of these scripts receive.
    fn on_the_log<'a>(&self, script: &'a Script, known: Place) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        call.key(&self.keys.of_the_log()[..]).arg(&known.epoch.0.to_le_bytes()[..]).arg(known.position);
        call
    }

    /// Runs a script on the log. Fails if the log is not the one that the caller knows.
    fn run(&self, call: &ScriptInvocation<'_>, known: Place) -> Result<Answer, EngineError> {
        let value: Value = self.connections.ask(|connection| call.invoke(connection))?;
        Answer::new(value)?.of(known)
    }
}
