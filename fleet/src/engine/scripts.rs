//! PURE: the scripts.

use redis::Script;

const COMMON: &str = include_str!("scripts/common.lua");

pub(super) struct Scripts {
    pub(super) agree: Script,
    pub(super) accept: Script,
    pub(super) word: Script,
    pub(super) append: Script,
    pub(super) revoked: Script,
    pub(super) records: Script,
    pub(super) trim: Script,
    pub(super) compare: Script,
    pub(super) chunk: Script,
    pub(super) finish: Script,
    pub(super) lease: Script,
}

impl Scripts {
    /// The scripts, with each text passed through `edit`, for tests.
    pub(super) fn new(edit: impl Fn(&str) -> String) -> Self {
        let on_the_log = |text: &str| Script::new(&edit(&format!("{COMMON}\n{text}")));
        Self {
            agree: on_the_log(include_str!("scripts/agree.lua")),
            accept: on_the_log(include_str!("scripts/accept.lua")),
            word: on_the_log(include_str!("scripts/word.lua")),
            append: on_the_log(include_str!("scripts/append.lua")),
            revoked: on_the_log(include_str!("scripts/revoked.lua")),
            records: on_the_log(include_str!("scripts/records.lua")),
            trim: on_the_log(include_str!("scripts/trim.lua")),
            compare: on_the_log(include_str!("scripts/compare.lua")),
            chunk: on_the_log(include_str!("scripts/chunk.lua")),
            finish: on_the_log(include_str!("scripts/finish.lua")),
            lease: Script::new(&edit(include_str!("scripts/lease.lua"))),
        }
    }
}
