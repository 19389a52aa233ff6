//! The page for Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use concurrent_cuckoo_filter::FigureValue;

use crate::core::Node;
use crate::node::State;

/// How often each of these has happened.
#[derive(Debug)]
pub(crate) struct Counts([(&'static str, AtomicU64); 4]);

impl Counts {
    pub(crate) fn of(names: [&'static str; 4]) -> Self {
        Self(names.map(|name| (name, AtomicU64::new(0))))
    }

    pub(crate) fn count(&self, name: &str) {
        for (_, count) in self.0.iter().filter(|(of, _)| *of == name) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The page of this node, with the requests to `/protected` and the changes, by what came of them.
pub(crate) fn page(node: &Node, requests: &Counts, changes: &Counts, lost_lines: u64) -> String {
    let (mut page, health) = (String::new(), node.health());
    let states = [State::Joining, State::Ready, State::Stale, State::Waiting];
    let of =
        |state: State| (format!("{{state=\"{state:?}\"}}").to_lowercase(), f64::from(u8::from(state == health.state)));
    add(&mut page, "fleet_state", "gauge", "1 for the state of the node, 0 for the others", states.map(of));
    let counts = |counts: &Counts, name: &str| {
        counts.0.each_ref().map(|(of, count)| (format!("{{{name}=\"{of}\"}}"), count.load(Ordering::Relaxed) as f64))
    };
    let requests = counts(requests, "outcome");
    add(&mut page, "fleet_requests_total", "counter", "requests to /protected, by outcome", requests);
    let changes = counts(changes, "result");
    add(&mut page, "fleet_changes_total", "counter", "revocations that were asked for, by result", changes);
    let mut one = |name, kind, help, value: f64| add(&mut page, name, kind, help, [(String::new(), value)]);
    one("fleet_questions_total", "counter", "tokens for which etcd was asked", health.questions as f64);
    one("fleet_joins_total", "counter", "how often the node has read all tokens", health.joins as f64);
    one("fleet_log_lines_lost_total", "counter", "lines of the log that were lost", lost_lines as f64);
    one("fleet_position", "gauge", "revision of the last change that the node has", health.position as f64);
    one("fleet_clock_set_by_seconds", "gauge", "by how much the clock was set since the start", health.clock_set_by);
    if let Some(epoch) = health.epoch {
        one("fleet_capacity", "gauge", "tokens that may be revoked at a time", epoch.settings.capacity as f64);
        one("fleet_epoch", "gauge", "number of the epoch", epoch.number as f64);
    }
    if let Some(stats) = node.stats() {
        for figure in stats.figures() {
            match figure.value {
                FigureValue::Counter(count) => one(figure.name, "counter", figure.help, count as f64),
                FigureValue::Gauge(value) => one(figure.name, "gauge", figure.help, value),
            }
        }
    }
    page
}

fn add(page: &mut String, name: &str, kind: &str, help: &str, samples: impl IntoIterator<Item = (String, f64)>) {
    // Writing to a string can't fail.
    _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        _ = writeln!(page, "{name}{labels} {value}");
    }
}
