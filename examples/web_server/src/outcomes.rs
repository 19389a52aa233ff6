//! CONCURRENT: counts the outcomes of requests for the metrics page.

use metrics::{Counter, counter};

/// The counters of requests to `/protected`, each looked up once.
pub(crate) struct Outcomes {
    pub(crate) accepted: Counter,
    pub(crate) revoked: Counter,
    pub(crate) repeated: Counter,
    /// Without a token, or with an invalid one.
    pub(crate) malformed: Counter,
    /// The store has failed, or there is no room for more identifiers.
    pub(crate) unavailable: Counter,
}

impl Outcomes {
    /// Call this after the recorder is installed.
    pub(crate) fn new() -> Self {
        metrics::describe_counter!("web_server_requests_total", "requests to /protected, by outcome");
        let of = |outcome: &'static str| {
            let counter = counter!("web_server_requests_total", "outcome" => outcome);
            counter.absolute(0); // So that the page has it from the start.
            counter
        };
        Self {
            accepted: of("accepted"),
            revoked: of("revoked"),
            repeated: of("repeated"),
            malformed: of("malformed"),
            unavailable: of("unavailable"),
        }
    }
}
