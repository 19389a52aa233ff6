//! The status of a node: as JSON for `/healthz`, as a Prometheus page for `/metrics`.

use metrics::{counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use serde::Serialize;

use super::clock::Moment;
use super::state::{Entered, State};
use super::{Node, lock};

/// The status of a node.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Health {
    pub(crate) node: String,
    pub(crate) state: State,
    /// When it entered this state, in seconds since 1970 by the engine's clock; none while that is not known.
    pub(crate) since: Option<f64>,
    pub(crate) why: String,
    /// Identifies the log, if the engine has had several one after the other.
    pub(crate) log: Option<String>,
    /// The number of the last message that is in the filter.
    pub(crate) position: Option<u64>,
    /// The number of the last message in the log that this node knows of.
    pub(crate) head: Option<u64>,
    pub(crate) lag: Lag,
    pub(crate) digest: Option<Digest>,
    pub(crate) snapshot: Option<Snapshot>,
    /// The last states, the present one last.
    pub(crate) history: Vec<Past>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Lag {
    /// How many messages it knows of and has not applied. Each has 1 to 100 changes.
    pub(crate) messages: Option<u64>,
    /// How long ago the last question to the engine was sent whose answer is applied. The filter has everything
    /// that the log had then.
    pub(crate) seconds: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Digest {
    /// The position of the digest.
    pub(crate) position: u64,
    pub(crate) value: String,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Snapshot {
    pub(crate) position: u64,
    pub(crate) age_seconds: f64,
    pub(crate) node: String,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Past {
    pub(crate) state: State,
    pub(crate) since: Option<f64>,
    pub(crate) why: String,
}

impl Health {
    pub(crate) fn of(node: &Node) -> Self {
        let now = node.clock.now();
        let (known, life) = (node.known(), node.life.load_full());
        let engine_now = known.map(|known| known.engine_now(now));
        // A reader of `/healthz` needs no more precision.
        let time = |at: Moment| engine_now.map(|engine| (engine as f64 - now.since(at).as_millis() as f64) / 1000.0);
        let mut standing = node.standing();
        let Entered { state, at, why } = standing.now(now).clone();
        let history =
            standing.history().map(|past| Past { state: past.state, since: time(past.at), why: past.why.clone() });
        let history = history.collect();
        drop(standing);
        let place = life.as_ref().map(|life| life.place());
        let messages = match (known, place) {
            (Some(known), Some(place)) if known.place.epoch == place.epoch => {
                Some(known.place.position.saturating_sub(place.position))
            }
            _ => None,
        };
        let basis = life.as_ref().and_then(|life| life.basis());
        Self {
            node: node.settings.node.clone(),
            state,
            since: time(at),
            why,
            log: known.map(|known| format!("{:016x}", known.place.epoch.0)),
            position: place.map(|place| place.position),
            head: known.map(|known| known.place.position),
            lag: Lag { messages, seconds: basis.map(|basis| now.since(basis).as_secs_f64()) },
            digest: lock(&node.digest).map(|(position, digest)| Digest { position, value: format!("{digest:016x}") }),
            snapshot: lock(&node.snapshot).as_ref().map(|info| Snapshot {
                position: info.place.position,
                age_seconds: engine_now.map_or(0.0, |engine| engine.saturating_sub(info.at) as f64 / 1000.0),
                node: info.node.clone(),
            }),
            history,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }
}

/// The Prometheus page of one node.
pub(crate) struct Page(PrometheusRecorder);

impl Page {
    pub(crate) fn new() -> Self {
        Self(PrometheusBuilder::new().build_recorder())
    }
}

pub(crate) fn render(page: &Page, node: &Node) -> String {
    metrics::with_local_recorder(&page.0, || record(node));
    page.0.handle().render()
}

fn record(node: &Node) {
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
    if let Some(life) = &*node.life.load() {
        let mut stats = life.filter.stats();
        stats.false_positives_recorded = tallies.false_positives.get();
        stats.publish("revoked");
    }
}
