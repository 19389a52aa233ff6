//! For tests: a cluster of etcd on this machine, and the network around it.

pub(crate) mod cluster;
pub(crate) mod proxy;

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

/// The longest wait for something that must happen sooner or later, on the slowest machine: `FLEET_LONGEST` seconds, or 120.
/// `ci/steps`, in which it often does not happen, waits less.
pub(crate) fn longest() -> Duration {
    Duration::from_secs(env::var("FLEET_LONGEST").map_or(120, |seconds| seconds.parse().expect("a number")))
}

/// Whether there is an etcd to test with.
pub(crate) fn has_etcd() -> bool {
    let search =
        Command::new("sh").args(["-c", "command -v etcd && command -v etcdctl && command -v setpriv"]).output();
    if search.unwrap().status.success() {
        return true;
    }
    let is_required = env::var("FLEET_ENGINE").is_ok_and(|engine| engine == "required");
    assert!(!is_required, "etcd, etcdctl or setpriv (of util-linux) is not installed, and is required");
    eprintln!("skipped: etcd, etcdctl or setpriv is not installed; ci/fleet --install installs the first two");
    false
}

/// Waits until there is an answer.
#[track_caller]
pub(crate) fn wait<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < longest(), "waited {:?} for {what}", longest());
        std::thread::sleep(Duration::from_millis(10));
    }
}
