//! PURE: the scripts, and the keys that they receive.

use redis::Script;

use crate::change::{Position, TokenId};
use crate::log::{Epoch, MessageId};

const COMMON: &str = include_str!("scripts/common.lua");

pub(super) struct Scripts {
    pub(super) agree: Script,
    pub(super) head: Script,
    pub(super) tick: Script,
    pub(super) append: Script,
    pub(super) revoked: Script,
    pub(super) trim: Script,
    pub(super) compare: Script,
    pub(super) follow: Script,
    pub(super) chunk: Script,
    pub(super) finish: Script,
    pub(super) lease: Script,
    pub(super) give_back: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self::edited(str::to_owned)
    }

    /// The scripts, with each text passed through `edit`.
    pub(super) fn edited(edit: impl Fn(&str) -> String) -> Self {
        let script = |text: &str| Script::new(&edit(text));
        let on_the_log = |text: &str| script(&format!("{COMMON}\n{text}"));
        Self {
            agree: on_the_log(include_str!("scripts/agree.lua")),
            head: on_the_log(include_str!("scripts/head.lua")),
            tick: on_the_log(include_str!("scripts/tick.lua")),
            append: on_the_log(include_str!("scripts/append.lua")),
            revoked: on_the_log(include_str!("scripts/revoked.lua")),
            trim: on_the_log(include_str!("scripts/trim.lua")),
            compare: on_the_log(include_str!("scripts/compare.lua")),
            follow: on_the_log(include_str!("scripts/follow.lua")),
            chunk: on_the_log(include_str!("scripts/chunk.lua")),
            finish: on_the_log(include_str!("scripts/finish.lua")),
            lease: script(include_str!("scripts/lease.lua")),
            give_back: script(include_str!("scripts/give_back.lua")),
        }
    }
}

/// The keys of a fleet. They begin with its name in braces, so that a cluster keeps all of them on one machine.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    name: String,
}

impl Keys {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }

    fn key(&self, of: &str) -> Vec<u8> {
        format!("{{{}}}:{of}", self.name).into_bytes()
    }

    /// The first keys that every script on the log receives.
    pub(super) fn of_the_log(&self) -> [Vec<u8>; 4] {
        ["fleet", "log", "ends", "live"].map(|of| self.key(of))
    }

    pub(super) fn log(&self) -> Vec<u8> {
        self.key("log")
    }

    pub(super) fn answer(&self, MessageId(id): MessageId) -> Vec<u8> {
        [self.key("id:"), id.to_vec()].concat()
    }

    pub(super) fn record(&self, TokenId(token): TokenId) -> Vec<u8> {
        [self.key("token:"), token.to_vec()].concat()
    }

    pub(super) fn digests(&self, epoch: Epoch, position: Position) -> Vec<u8> {
        self.key(&format!("digests:{:016x}:{position}", epoch.0))
    }

    pub(super) fn snapshots(&self) -> Vec<u8> {
        self.key("snapshots")
    }

    pub(super) fn snapshot(&self, key: &str) -> Vec<u8> {
        self.key(&format!("snapshot:{key}"))
    }

    pub(super) fn lease(&self) -> Vec<u8> {
        self.key("lease")
    }
}
