//! The state of a node, and what it knows: the body of `/healthz`.

use serde::Serialize;

use super::clock::Moment;
use super::state::{Entered, State};
use super::{Core, lock};

/// The status of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    /// The name of the node in its settings.
    pub node: String,
    /// The same with the random number of this process.
    pub instance: String,
    /// The state.
    pub state: State,
    /// When it entered this state, in seconds since 1970 by the engine's clock; none while that is not known.
    pub since: Option<f64>,
    /// Why it is in this state.
    pub why: String,
    /// Identifies the log, if the engine has had several one after the other.
    pub log: Option<String>,
    /// The number of the last message that is in the filter.
    pub position: Option<u64>,
    /// The hash of the log at that position.
    pub chain: Option<String>,
    /// The number of the last message in the log that this node knows of.
    pub head: Option<u64>,
    /// How far behind the node is.
    pub lag: Lag,
    /// How many messages that no node has written were removed from the log.
    pub foreign: u64,
    /// The last digest.
    pub digest: Option<DigestAt>,
    /// The newest snapshot.
    pub snapshot: Option<SnapshotAt>,
    /// The last states, the present one last.
    pub history: Vec<Past>,
}

/// How far behind a node is.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lag {
    /// How many messages it knows of and has not applied. Each has 1 to 100 changes.
    pub messages: Option<u64>,
    /// How long ago the last question to the engine was sent whose answer is applied. The filter has everything
    /// that the log had then.
    pub seconds: Option<f64>,
}

/// The digest of a filter.
#[derive(Clone, Debug, Serialize)]
pub struct DigestAt {
    /// The position of the digest.
    pub position: u64,
    /// In hexadecimal digits.
    pub value: String,
}

/// A snapshot.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotAt {
    /// The last message in it.
    pub position: u64,
    /// How old it is.
    pub age_seconds: f64,
    /// The node that wrote it.
    pub node: String,
}

/// A state that the node was in.
#[derive(Clone, Debug, Serialize)]
pub struct Past {
    /// The state.
    pub state: State,
    /// When it began, in seconds since 1970.
    pub since: Option<f64>,
    /// Why.
    pub why: String,
}

impl Health {
    pub(super) fn of(node: &Core) -> Self {
        let now = node.clock.now();
        let (known, life) = (node.known(), node.life.load_full());
        let known_place = node.known_place();
        let engine_now = node.engine_now();
        // A reader of `/healthz` needs no more precision.
        let time = |at: Moment| engine_now.map(|engine| (engine as f64 - now.since(at).as_millis() as f64) / 1000.0);
        let mut standing = node.standing();
        let Entered { state, at, why } = standing.now(now).clone();
        let history =
            standing.history().map(|past| Past { state: past.state, since: time(past.at), why: past.why.clone() });
        let history = history.collect();
        drop(standing);
        let place = life.as_ref().map(|life| life.place());
        let messages = known_place
            .zip(place)
            .filter(|(known, place)| known.epoch == place.epoch)
            .map(|(known, place)| known.position.saturating_sub(place.position));
        let basis = life.as_ref().and_then(|life| life.basis());
        Self {
            node: node.settings.node.clone(),
            instance: node.name.clone(),
            state,
            since: time(at),
            why,
            log: known_place.map(|known| format!("{:016x}", known.epoch.0)),
            position: place.map(|place| place.position),
            chain: place.map(|place| format!("{:016x}", place.chain.0)),
            head: known_place.map(|known| known.position),
            foreign: known.map_or(0, |known| known.head.foreign),
            lag: Lag { messages, seconds: basis.map(|basis| now.since(basis).as_secs_f64()) },
            digest: lock(&node.digest).map(|(position, digest)| DigestAt { position, value: format!("{digest:016x}") }),
            snapshot: lock(&node.snapshot).as_ref().map(|info| SnapshotAt {
                position: info.place.position,
                age_seconds: engine_now.map_or(0.0, |engine| engine.saturating_sub(info.at) as f64 / 1000.0),
                node: info.node.clone(),
            }),
            history,
        }
    }

    /// Whether the node answers from its filter.
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }
}
