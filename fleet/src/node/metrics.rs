//! The figures of a node for a metrics system.

use metrics::{counter, describe_counter, describe_gauge, gauge};

use super::state::State;
use super::{Health, Node, lock};

impl Node {
    /// Records the figures of the node and of its filter with the recorder of the `metrics` facade, always the same one.
    pub fn record_metrics(&self) {
        record(self);
    }
}

fn record(node: &Node) {
    let node = node.core();
    let set = |name: &'static str, meaning: &'static str, value: Option<f64>| {
        describe_gauge!(name, meaning);
        if let Some(value) = value {
            gauge!(name).set(value);
        }
    };
    let count = |name: &'static str, meaning: &'static str, value: u64| {
        describe_counter!(name, meaning);
        counter!(name).absolute(value);
    };
    let health = Health::of(node);
    describe_gauge!("fleet_state", "1 for the state of the node, 0 for the others");
    for state in State::ALL {
        gauge!("fleet_state", "state" => state.name()).set(if health.state == state { 1.0 } else { 0.0 });
    }
    let position = "the number of the last message that is in the filter";
    set("fleet_position", position, health.position.map(|position| position as f64));
    let head = "the number of the last message in the log that this node knows of";
    set("fleet_head", head, health.head.map(|head| head as f64));
    let messages = "messages that this node knows of and has not applied, each of 1 to 100 changes";
    set("fleet_lag_messages", messages, health.lag.messages.map(|messages| messages as f64));
    let seconds = "how long ago the last question to the engine was sent whose answer is applied";
    set("fleet_lag_seconds", seconds, health.lag.seconds);
    let digest = *lock(&node.digest);
    let meaning = "the lower 52 bits of the filter's digest; nodes at the same fleet_digest_position have the same one";
    set("fleet_digest", meaning, digest.map(|(_, digest)| (digest & ((1 << 52) - 1)) as f64));
    set("fleet_digest_position", "the position of that digest", digest.map(|(position, _)| position as f64));
    let snapshot = health.snapshot.as_ref();
    let position = "the position of the newest snapshot";
    set("fleet_snapshot_position", position, snapshot.map(|snapshot| snapshot.position as f64));
    let age = "the age of the newest snapshot";
    set("fleet_snapshot_age_seconds", age, snapshot.map(|snapshot| snapshot.age_seconds));

    let tallies = &node.tallies;
    describe_counter!("fleet_requests_total", "requests to /protected, by outcome");
    for (outcome, tally) in [
        ("accepted", &tallies.accepted),
        ("revoked", &tallies.revoked),
        ("malformed", &tallies.malformed),
        ("unavailable", &tallies.unavailable),
    ] {
        counter!("fleet_requests_total", "outcome" => outcome).absolute(tally.get());
    }
    for (name, meaning, tally) in [
        ("fleet_record_questions_total", "how often the record was asked for a token", &tallies.questions),
        ("fleet_messages_total", "messages that were applied", &tallies.messages),
        ("fleet_changes_total", "changes that were applied", &tallies.changes),
        ("fleet_joins_total", "how often a filter was loaded, or started empty", &tallies.joins),
        ("fleet_rebuilt_total", "how often a filter was rebuilt from the record", &tallies.rebuilt),
        ("fleet_clock_contradictions_total", "how often the clocks contradicted each other", &tallies.contradictions),
        ("fleet_differences_total", "how often this node's filter differed", &tallies.differences),
        ("fleet_snapshots_written_total", "snapshots that this node has written", &tallies.written),
        ("fleet_snapshots_passed_over_total", "snapshots that were not good", &tallies.passed_over),
        ("fleet_retries_total", "messages that were sent again", &tallies.retries),
        (
            "fleet_digests_skipped_total",
            "digests that were left out, because the previous one was still under way",
            &tallies.skipped,
        ),
    ] {
        count(name, meaning, tally.get());
    }
    count("fleet_foreign_messages_total", "messages in the log that no node has written", health.foreign);
    if let Some(life) = &*node.life.load() {
        node.figures.record(|| life.filter.stats());
    }
}
