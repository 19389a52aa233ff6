//! Waiting, random numbers, and HTTP.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use fleet::testing::server::Server;
use serde_json::Value;
use ureq::Agent;

/// The longest wait for something that must happen sooner or later, on the slowest machine.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether there is an engine to test with.
pub(crate) fn has_engine() -> bool {
    if Server::is_installed() {
        return true;
    }
    assert_ne!(env::var("FLEET_ENGINE").as_deref(), Ok("required"), "redis-server is not installed, and is required");
    eprintln!("skipped: redis-server is not installed");
    false
}

/// Ends a test that needs an engine if there is none.
macro_rules! needs_engine {
    () => {
        if !crate::support::has_engine() {
            return;
        }
    };
}
pub(crate) use needs_engine;

/// SplitMix64: random numbers that are the same for the same seed.
pub(crate) struct Chance(u64);

impl Chance {
    /// Uses the seed in `FLEET_SEED` in the environment, or a new one. Prints the seed.
    pub(crate) fn new() -> Self {
        let seed = env::var("FLEET_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| getrandom::u64().unwrap());
        println!("FLEET_SEED={seed}");
        Self(seed)
    }

    /// Another generator with a sequence of its own.
    pub(crate) fn branch(&mut self) -> Self {
        Self(self.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A client with connections of its own.
#[derive(Clone)]
pub(crate) struct Client(Agent);

impl Client {
    /// A client that waits this long for an answer.
    pub(crate) fn new(timeout: Duration) -> Self {
        Self(Agent::config_builder().http_status_as_error(false).timeout_global(Some(timeout)).build().into())
    }

    /// Each of the tokens has a header of its own. Returns `None` if there is no answer.
    pub(crate) fn ask(&self, method: &str, url: &str, bearers: &[&str], body: &str) -> Option<Answer> {
        let mut request = ureq::http::Request::builder().method(method).uri(url);
        for token in bearers {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let mut response = self.0.run(request.body(body.as_bytes()).unwrap()).ok()?;
        let status = response.status().as_u16();
        let body = response.body_mut().read_to_string().ok()?;
        Some(Answer { status, body })
    }

    /// The status for a request with this token.
    pub(crate) fn protected(&self, node: &str, token: &str) -> Option<u16> {
        self.ask("GET", &format!("{node}/protected"), &[token], "").map(|answer| answer.status)
    }
}

/// In seconds since 1970.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}
