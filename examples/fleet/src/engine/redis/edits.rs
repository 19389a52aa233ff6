//! PURE: the scripts' text with a step left out, and with a clock that tests set.

use crate::engine::Step;

/// The key of the time, in milliseconds since 1970.
pub(crate) const TIME: &str = "time";

pub(super) fn edit(text: &str, left_out: &[Step], has_set_time: bool) -> String {
    let mut text = text.to_owned();
    for step in left_out {
        for (from, to) in edits(*step) {
            text = text.replace(from, to);
        }
    }
    if has_set_time {
        let time = format!(
            "local set = tonumber(redis.call('GET', '{TIME}'))\nlocal time = {{math.floor(set / 1000), set % 1000 * 1000}}"
        );
        text = text.replace("local time = redis.call('TIME')", &time);
    }
    text
}

fn edits(step: Step) -> &'static [(&'static str, &'static str)] {
    match step {
        Step::Identifier => &[("redis.call('SET', ANSWER, epoch .. answer, 'PX', ARGV[3])", "")],
        Step::Record => &[("return entry and entry.term > tick and entry", "return false")],
        Step::Outlived => &[("return entry and entry.term > tick and entry", "return entry")],
        Step::Count => &[("if live >= capacity then", "if false then")],
        Step::Expiry => &[("live = live - tonumber(redis.call('HGET', COUNTS, term))", "")],
        Step::Before => &[("if now >= tonumber(ARGV[5]) then", "if false then")],
        Step::Density => &[("head = head + 1", "head = head + 2")],
        Step::Known => &[("or head < tonumber(known_position)", "")],
        Step::Forward => &[("if present <= tick then", "if present == tick then")],
        Step::Lease => &[("if holder and holder ~= ARGV[1] then return 0 end", "")],
        Step::Epoch => &[("epoch ~= known_epoch or", "")],
        Step::NextNumber | Step::SilentGap | Step::SameLast | Step::ReadBack | Step::Checksum => &[],
    }
}

#[test]
fn every_edit_changes_a_script() {
    let all = concat!(
        include_str!("scripts/common.lua"),
        include_str!("scripts/append.lua"),
        include_str!("scripts/lease.lua")
    );
    let steps = [
        Step::Identifier,
        Step::Record,
        Step::Outlived,
        Step::Count,
        Step::Expiry,
        Step::Before,
        Step::Density,
        Step::Known,
        Step::Forward,
        Step::Lease,
        Step::Epoch,
    ];
    for step in steps {
        assert_ne!(edit(all, &[step], false), all, "{step:?}");
    }
    assert_ne!(edit(all, &[], true), all);
}
