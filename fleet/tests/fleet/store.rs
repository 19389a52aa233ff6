//! Snapshots that were damaged in the engine.

use crate::nodes::{Fleet, Node, TICKING};
use crate::storm::Storm;
use crate::support::{Chance, needs_engine, wait_for};

/// Changes a bit of the newest snapshot, if there are three.
pub(crate) fn damage_newest(fleet: &Fleet) -> Option<()> {
    let mut redis = redis::Client::open(fleet.url.clone()).unwrap().get_connection().ok()?;
    let names: Vec<String> = redis::cmd("HKEYS").arg("{revoked}:snapshots").query(&mut redis).ok()?;
    let position = |name: &&String| name.split(':').next().unwrap().parse::<u64>().unwrap();
    let newest = names.iter().max_by_key(position).filter(|_| names.len() == 3)?;
    let key = format!("{{revoked}}:snapshot:{newest}");
    let chunk: Option<Vec<u8>> = redis::cmd("HGET").arg(&key).arg(0).query(&mut redis).ok()?;
    let mut chunk = chunk?;
    let middle = chunk.len() / 2;
    chunk[middle] ^= 4;
    redis::cmd("HSET").arg(&key).arg(0).arg(chunk).query(&mut redis).ok()
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_the_one_before() {
    needs_engine!();
    let mut chance = Chance::new();
    let (fleet, _proxy) = Fleet::start("");
    Storm::rage(&fleet, &mut chance, |storm| {
        // A new snapshot may be written between the damage and the joining. Then the test tries again.
        wait_for("a node to pass over a damaged snapshot", || {
            wait_for("three snapshots", || damage_newest(&fleet));
            let node = Node::start(&fleet.url, TICKING);
            wait_for("it to join", || node.is_ready().then_some(()));
            let said = node.said();
            assert!(node.end());
            said.contains("is passed over").then_some(())
        });
        storm.wait_for_more(20);
    });
}
