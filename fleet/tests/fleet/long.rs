//! All faults at random, one after the other.

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use fleet::testing::proxy::Mode;
use fleet::testing::server::Server;
use rustix::process::Signal;

use crate::nodes::Fleet;
use crate::store::damage_newest;
use crate::storm::Storm;
use crate::support::{Chance, needs_engine};

#[test]
#[ignore = "takes as many seconds as FLEET_STORM says, or a minute"]
fn a_long_storm_of_all_faults() {
    needs_engine!();
    let seconds = env::var("FLEET_STORM").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
    let mut chance = Chance::new();
    let (fleet, proxy) = Fleet::start("");
    let master = fleet.engine.lock().unwrap().address();
    let folder = tempfile::tempdir().unwrap();
    let port = master.port().to_string();
    let replica = Server::start_with(folder.path(), &["--replicaof", "127.0.0.1", &port]).unwrap();
    let mut when = chance.branch();
    let mut faults = [0; 8];
    Storm::rage_slowly(&fleet, &mut chance, Duration::from_millis(15), |storm| {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(seconds) {
            // Longer or shorter than a lease.
            let time = Duration::from_millis(when.next() % 2500);
            let fault = when.below(faults.len());
            faults[fault] += 1;
            let through = |mode: Mode| {
                proxy.set(mode);
                thread::sleep(time);
                proxy.set(Mode::Forward);
            };
            match fault {
                // The first node is the one behind the proxy.
                0 => fleet.replace(1 + when.below(2)),
                1 => {
                    let mut engine = fleet.engine.lock().unwrap();
                    engine.kill();
                    thread::sleep(time);
                    engine.restart().unwrap();
                }
                2 => through(Mode::Swallow),
                3 => through(Mode::SwallowAnswers),
                4 => through(Mode::Cut),
                5 => through(Mode::Delay(Duration::from_millis(50))),
                6 => {
                    // The log may be trimmed past it meanwhile.
                    let node = when.below(3);
                    fleet.signal(node, Signal::STOP);
                    thread::sleep(2 * time);
                    fleet.signal(node, Signal::CONT);
                }
                _ => {
                    _ = damage_newest(&fleet);
                    fleet.replace(1 + when.below(2));
                    proxy.lead_to(replica.address());
                    thread::sleep(time);
                    proxy.lead_to(master);
                }
            }
            storm.wait_for_more(5);
        }
    });
    println!("faults of each kind: {faults:?}");
}
