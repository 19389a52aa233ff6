//! What nodes agree on, digests, snapshots, and the lease.

use super::*;
use crate::log::SnapshotInfo;

#[test]
fn a_node_with_other_settings_is_told_both() {
    holds(|subject| {
        let head = subject.agree();
        assert_eq!(subject.other().agree(), head);
        let others = [
            Agreement { schema: "others".into(), ..agreement() },
            Agreement { probe: 2, ..agreement() },
            Agreement { capacity: 1, ..agreement() },
            Agreement { rate: 1, ..agreement() },
            Agreement { resolution: Duration::from_secs(1), ..agreement() },
            Agreement { longest: 1, ..agreement() },
            Agreement { margin: Duration::from_secs(1), ..agreement() },
        ];
        for other in others {
            let (ours, theirs) = (other.to_string(), agreement().to_string());
            let told = subject.agree_with(&other, None, false);
            assert_eq!(told, Err(EngineError::Disagreement { ours, theirs }));
        }
    });
}

#[test]
fn two_fleets_have_one_engine() {
    holds(|subject| {
        let head = subject.agree();
        let settings = EngineSettings { name: "other".into(), ..subject.engine.settings() };
        let client = RedisEngine::edited(settings, &[], false).unwrap();
        let other = Subject { engine: Arc::clone(&subject.engine), client };
        let theirs = other.agree();
        assert_ne!(theirs.place.epoch, head.place.epoch);
        subject.send(head.place, &[revoke(1, tick() + 50)]);
        assert_eq!(other.word(theirs.place).unwrap().place.position, 1);
        assert_eq!(other.revoked_until(theirs.place, 1).unwrap(), None);
        assert_another(other.append(head.place, fresh(), &[revoke(1, tick() + 50)]));
        for name in ["", "a b", "{x}", "a*"] {
            let settings = EngineSettings { name: name.into(), ..subject.engine.settings() };
            assert!(RedisEngine::new(settings).is_err_and(|error| error.to_string().contains("name for a fleet")));
        }
    });
}

#[test]
fn digests_of_a_place_are_told_to_all() {
    holds(|subject| {
        let head = subject.agree();
        let later = subject.send(head.place, &[revoke(1, tick() + 5)]).place;
        let compare = |place, node, digest| done(subject.client.compare(place, node, digest));
        assert_eq!(compare(head.place, "a", u64::MAX).unwrap(), [("a".into(), u64::MAX)]);
        assert_eq!(compare(head.place, "b", 2).unwrap(), [("a".into(), u64::MAX), ("b".into(), 2)]);
        assert_eq!(compare(later, "b", 3).unwrap(), [("b".into(), 3)]);
        let digests: Vec<Vec<u8>> = subject.engine.say("KEYS {test}:digests:*");
        assert!(digests.iter().all(|key| subject.engine.command::<i64>(&[b"TTL", key]) > 0), "they stay for good");
    });
}

#[test]
fn settings_that_can_lose_something_are_told() {
    let concerns = |options: &[&str]| {
        let engine = Engine::start(options)?;
        Some(done(RedisEngine::new(engine.settings()).unwrap().concerns()).unwrap())
    };
    let Some(none) = concerns(&[]) else { return };
    assert_eq!(none, Vec::<String>::new());
    let told = |options: &[&str], words: &str| {
        let concerns = concerns(options).unwrap_or_default();
        assert!(concerns.len() == 1 && concerns[0].starts_with(words), "{concerns:?}");
    };
    told(&["--appendonly", "no"], "appendonly is not yes");
    told(&["--appendfsync", "everysec"], "appendfsync is not always");
    told(&["--no-appendfsync-on-rewrite", "yes"], "no-appendfsync-on-rewrite is not no");
    told(&["--aof-load-truncated", "yes"], "aof-load-truncated is not no");
    told(&["--maxmemory", "1gb", "--maxmemory-policy", "allkeys-lru"], "maxmemory-policy is not noeviction");
    // If an engine does not allow the question, that is not the node's concern.
    assert_eq!(concerns(&["--rename-command", "CONFIG", "", "--appendonly", "no"]), Some(Vec::new()));
}

#[test]
fn the_record_is_read_in_parts_and_has_every_token() {
    holds(|subject| {
        let agreement = Agreement { capacity: 1 << 20, ..agreement() };
        let head = subject.agree_with(&agreement, None, false).unwrap();
        let end = |number: u64| tick() + 1 + (number % 50) as Tick;
        let mut known = head.place;
        for part in (0..3000).collect::<Vec<u64>>().chunks(100) {
            known =
                subject.send(known, &part.iter().map(|&number| revoke(number, end(number))).collect::<Vec<_>>()).place;
        }
        known = subject.send(known, &[restore(7)]).place;
        let (mut found, mut cursor, mut parts) = (std::collections::HashMap::new(), 0, 0);
        loop {
            let (next, part) = done(subject.client.records(known, cursor)).unwrap();
            found.extend(part.into_iter().map(|(token, end)| (token.0, end)));
            (cursor, parts) = (next, parts + 1);
            if cursor == 0 {
                break;
            }
        }
        let expected = (0..3000).filter(|number| *number != 7).map(|number| (token(number).0, end(number)));
        assert!(parts > 1 && found == expected.collect(), "{} in {parts} parts", found.len());
        assert_eq!(subject.word(known).unwrap().live, 2999);
    });
}

/// Writes a snapshot of three chunks.
fn write(subject: &Subject, place: Place, key: &str, keep: usize) -> SnapshotInfo {
    for number in 0..3 {
        done(subject.client.put(place, key, number, vec![number as u8; 10])).unwrap();
    }
    let (node, key) = ("a".to_owned(), key.to_owned());
    let info = SnapshotInfo { place, bytes: 18, digest: u64::MAX, at: 5, node, key };
    done(subject.client.finish(&info, 3, keep)).unwrap();
    info
}

#[test]
fn the_list_has_the_newest_first_and_the_last_few() {
    holds(|subject| {
        let mut place = subject.agree().place;
        let list = |place: Place| done(subject.client.list(place.epoch)).unwrap();
        let mut infos = Vec::new();
        for number in 0..5 {
            infos.insert(0, write(subject, place, &number.to_string(), 3));
            place = subject.send(place, &[revoke(number, tick() + 5)]).place;
        }
        assert_eq!(list(place), infos[..3]);
        let chunk = |key, number| done(subject.client.chunk(key, number)).unwrap();
        assert_eq!(chunk("2", 2), Some(vec![2; 10]));
        assert_eq!((chunk("2", 3), chunk("1", 0)), (None, None), "deleted with its entry");
        // An unfinished snapshot is not listed, and goes away by itself. A finished one stays.
        done(subject.client.put(place, "9", 0, vec![1])).unwrap();
        let info = SnapshotInfo { key: "9".into(), place, ..infos[0].clone() };
        assert!(matches!(done(subject.client.finish(&info, 2, 3)), Err(EngineError::Damaged(_))));
        assert_eq!(list(place), infos[..3]);
        assert!(subject.engine.say::<i64>("TTL {test}:snapshot:9") > 0);
        assert_eq!(subject.engine.say::<i64>("TTL {test}:snapshot:4"), -1);
        // An entry that can't be read is passed over, and deleted with the next snapshot.
        subject.engine.say::<()>("HSET {test}:snapshots 4 {");
        assert_eq!(list(place), infos[1..3]);
        write(subject, place, "10", 3);
        assert_eq!(subject.engine.say::<usize>("HLEN {test}:snapshots"), 3);
        // Snapshots of another log are not for this one.
        subject.engine.say::<()>("DEL {test}:fleet");
        assert_eq!(list(subject.agree().place), []);
    });
}

fn lease_is_one_nodes(subject: &Subject) {
    let lease = |node| done(subject.client.lease(node, LONG)).unwrap();
    assert!(lease("a"));
    assert!(!lease("b"), "two have it");
    assert!(lease("a"), "the holder gets it anew");
    done(subject.client.give_back("b")).unwrap();
    assert!(!lease("b"), "two have it");
    done(subject.client.give_back("a")).unwrap();
    assert!(done(subject.client.lease("b", Duration::from_millis(50))).unwrap());
    wait_for("the lease to end by itself", || lease("a"));
}

#[test]
fn one_node_has_the_lease_and_it_ends_by_itself() {
    holds(lease_is_one_nodes);
    fails_without(Step::Lease, "two have it", lease_is_one_nodes);
}
