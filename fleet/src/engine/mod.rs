//! The engine in Redis 7 or Valkey: a stream, and scripts that make one step of several commands.
//!
//! - `scripts`: the scripts, in Lua. `scripts/common.lua` is how each of them begins;
//! - `wire`: the bytes that they write and read;
//! - `link`: a connection that is replaced when it fails;
//! - `answer`: decodes a script's answer;
//! - `log`, `snapshots`: what a node needs from an engine.

mod answer;
mod link;
mod log;
mod scripts;
mod snapshots;
#[cfg(test)]
pub(crate) mod tests;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, ScriptInvocation};

use self::answer::Answer;
use self::link::{Link, Question};
use self::scripts::Scripts;
use crate::log::{EngineError, Place};

/// How long a read waits for messages at most, beyond the time limit of an answer.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// Where the engine is, and how it is used.
#[derive(Clone)]
pub struct EngineSettings {
    /// `redis://[USER:PASSWORD@]HOST:PORT`, `rediss://…` for TLS, or for Sentinel
    /// `redis+sentinel://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…]/MASTER` (`rediss+sentinel` for TLS).
    pub url: String,
    /// The name of the fleet: letters, digits, `-`, `_` and `.`. One engine can have several fleets.
    pub name: String,
    /// How long to wait for an answer.
    pub timeout: Duration,
    /// How long an identifier is remembered. A sender that gets no answer must give up long before.
    pub remember: Duration,
}

/// Leaves out the address, which may have a password in it.
impl fmt::Debug for EngineSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl EngineSettings {
    /// With a time limit of 1 second, and identifiers that are remembered for 10 minutes.
    pub fn new(url: &str, name: &str) -> Self {
        let (timeout, remember) = (Duration::from_secs(1), Duration::from_secs(600));
        Self { url: url.to_owned(), name: name.to_owned(), timeout, remember }
    }
}

/// A client of an engine in Redis or Valkey. It has two connections: one waits for messages, the other is shared by
/// all other requests.
#[derive(Clone)]
pub struct RedisEngine {
    inner: Arc<Inner>,
}

struct Inner {
    settings: EngineSettings,
    link: Link,
    waiting: Link,
    scripts: Scripts,
    #[cfg(test)]
    left_out: Vec<tests::Step>,
}

impl fmt::Debug for RedisEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisEngine").field(&self.inner.settings).finish()
    }
}

impl RedisEngine {
    /// Does not connect yet.
    ///
    /// # Errors
    /// If the address or the name is not one.
    pub fn new(settings: EngineSettings) -> Result<Self, EngineError> {
        Self::with(
            settings,
            Scripts::new(str::to_owned),
            #[cfg(test)]
            Vec::new(),
        )
    }

    fn with(
        settings: EngineSettings,
        scripts: Scripts,
        #[cfg(test)] left_out: Vec<tests::Step>,
    ) -> Result<Self, EngineError> {
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if settings.name.is_empty() || !settings.name.chars().all(is_fine) {
            let why = format!("{:?} is not a name for a fleet; use letters, digits, `-`, `_` and `.`", settings.name);
            return Err(EngineError::Refused(why));
        }
        let inner = Inner {
            link: Link::new(&settings.url, settings.timeout, settings.timeout)?,
            waiting: Link::new(&settings.url, settings.timeout, settings.timeout + LONGEST_WAIT)?,
            settings,
            scripts,
            #[cfg(test)]
            left_out,
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Inner {
    fn key(&self, of: &str) -> String {
        format!("{{{}}}:{of}", self.settings.name)
    }

    /// A call of a script on the log, with the arguments that all of these scripts receive.
    fn on_the_log<'a>(&self, script: &'a Script, known: Option<Place>, latest: u64) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        call.key(self.key("fleet"));
        match known {
            Some(Place { epoch, position, chain }) => {
                call.arg(&epoch.0.to_le_bytes()[..]).arg(position).arg(wire::hexadecimal(chain))
            }
            None => call.arg("").arg(0).arg(""),
        };
        call.arg(latest);
        call
    }

    /// Calls a script on the log with these further arguments.
    async fn ask(
        &self,
        script: &Script,
        known: Place,
        latest: u64,
        arguments: Vec<Vec<u8>>,
    ) -> Result<Answer, EngineError> {
        let mut call = self.on_the_log(script, Some(known), latest);
        for argument in arguments {
            call.arg(argument);
        }
        self.call(&call).await?.of(Some(known), latest)
    }

    async fn call(&self, call: &ScriptInvocation<'_>) -> Result<Answer, EngineError> {
        Answer::new(self.link.ask(Question::Script(call)).await?)
    }
}
