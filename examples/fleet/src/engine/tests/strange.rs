//! Data that no node has written, and data that remains in the engine.

use std::time::Duration;

use super::subject::*;
use crate::engine::redis::RedisEngine;
use crate::log::{EngineError, Head, Log, Place, Snapshots};

fn start_engine() -> Option<(Engine, RedisEngine, Head)> {
    let engine = Engine::start()?;
    let client = engine.client();
    let head = client.agree(&agreement()).unwrap();
    Some((engine, client, head))
}

#[test]
fn a_strange_message_is_damaged() {
    let Some((engine, client, head)) = start_engine() else { return };
    let epoch = head.epoch.0.to_le_bytes();
    let place = client.append(head.place(), fresh(), &[revoke(1, head.tick + 50)]).unwrap().position;
    let (next, odd) = (format!("{}-0", place + 1), format!("{}-1", place + 1));
    let (next, odd) = (next.as_bytes(), odd.as_bytes());
    let good = [&[0; 8], b"R".as_slice(), &[0; 12]].concat();
    let entries: [&[&[u8]]; 6] = [
        &[next, &epoch, b"12345678"],
        &[next, &epoch, b"12345678X"],
        &[next, &epoch, b""],
        &[next, b"payload", &good],
        &[next, &epoch, &good, b"more", b"1"],
        &[odd, &epoch, &good],
    ];
    for entry in entries {
        let command = [&[b"XADD".as_slice(), b"{test}:log"], entry].concat();
        engine.command::<()>(&command);
        let mut follower = client.follow(Place { epoch: head.epoch, position: place }).unwrap();
        let damaged = follower.next(Duration::from_millis(10));
        assert!(matches!(damaged, Err(EngineError::Damaged(_))), "{entry:?}: {damaged:?}");
        engine.command::<()>(&[b"XDEL", b"{test}:log", entry[0]]);
        engine.command::<()>(&[b"XSETID", b"{test}:log", format!("{place}-0").as_bytes()]);
    }
    // The control: a good message is accepted.
    engine.command::<()>(&[b"XADD", b"{test}:log", next, &epoch, &good]);
    engine.command::<()>(&[b"HINCRBY", b"{test}:fleet", b"head", b"1"]);
    let mut follower = client.follow(Place { epoch: head.epoch, position: place }).unwrap();
    assert_eq!(follower.next(LONG).unwrap().len(), 1);
}

#[test]
fn a_key_of_another_kind_is_refused() {
    let Some((engine, client, head)) = start_engine() else { return };
    engine.command::<()>(&[b"DEL", b"{test}:log"]);
    engine.command::<()>(&[b"SET", b"{test}:log", b"mine"]);
    let refused = client.append(head.place(), fresh(), &[revoke(1, head.tick + 50)]);
    assert!(matches!(refused, Err(EngineError::Refused(_))), "{refused:?}");
}

#[test]
fn a_snapshot_whose_entry_is_damaged_is_passed_over() {
    let Some((engine, client, head)) = start_engine() else { return };
    let write = || client.write(head.place(), 1, "a", 5, &mut |writer| writer.write_all(&[7; 10])).unwrap();
    let infos = [write(), write()];
    engine.command::<()>(&[b"HSET", b"{test}:snapshots", infos[1].key.as_bytes(), b"{"]);
    assert_eq!(client.list(head.epoch).unwrap(), infos[..1]);
    // The damaged entry is deleted with the next snapshot.
    write();
    let listed: usize = engine.command(&[b"HLEN", b"{test}:snapshots"]);
    let kept: Vec<Vec<u8>> = engine.command(&[b"KEYS", b"{test}:snapshot:*"]);
    assert_eq!((listed, kept.len()), (2, 2));
}

#[test]
fn what_is_not_needed_for_long_goes_away_by_itself() {
    let Some((engine, client, head)) = start_engine() else { return };
    let end = head.tick + 50;
    client.append(head.place(), fresh(), &[revoke(1, end)]).unwrap();
    client.compare(head.place(), "a", 1).unwrap();
    let unfinished = client.write(head.place(), 1, "a", 5, &mut |writer| {
        writer.write_all(&[7; 2 * CHUNK])?;
        let keys: Vec<Vec<u8>> = engine.command(&[b"KEYS", b"{test}:snapshot:*"]);
        assert!(
            keys.len() == 1 && engine.command::<i64>(&[b"TTL", &keys[0]]) > 0,
            "an unfinished snapshot stays for good"
        );
        Ok(())
    });
    let kept = [b"{test}:snapshot:", unfinished.unwrap().key.as_bytes()].concat();
    assert_eq!(engine.command::<i64>(&[b"TTL", &kept]), -1, "a snapshot goes away");
    let record = [b"{test}:token:".as_slice(), &token(1).0].concat();
    assert_eq!(engine.command::<u64>(&[b"EXPIRETIME", &record]), until(end) + 3600);
    for keys in [b"{test}:id:*".as_slice(), b"{test}:digests:*"] {
        let found: Vec<Vec<u8>> = engine.command(&[b"KEYS", keys]);
        assert!(found.len() == 1 && engine.command::<i64>(&[b"TTL", &found[0]]) > 0, "{keys:?}");
    }
}

#[test]
fn two_fleets_have_one_engine() {
    let Some((engine, client, head)) = start_engine() else { return };
    let settings = crate::engine::redis::Settings::new(&engine.url, "other");
    let other = RedisEngine::new(settings).unwrap();
    let theirs = other.agree(&agreement()).unwrap();
    assert_ne!(theirs.epoch, head.epoch);
    client.append(head.place(), fresh(), &[revoke(1, head.tick + 50)]).unwrap();
    assert_eq!(other.head(theirs.epoch).unwrap().position, 1);
    assert_eq!(other.revoked_until(theirs.place(), token(1)).unwrap(), None);
    assert_another(other.append(head.place(), fresh(), &[revoke(1, head.tick + 50)]));
}

#[test]
fn what_is_left_of_a_former_log_counts_for_nothing() {
    let Some((engine, client, head)) = start_engine() else { return };
    let (id, proposals) = (fresh(), [revoke(1, head.tick + 50)]);
    let first = client.append(head.place(), id, &proposals).unwrap();
    // Somebody deletes what the fleet has agreed on, and nothing else.
    engine.command::<()>(&[b"DEL", b"{test}:fleet"]);
    let new = client.agree(&agreement()).unwrap();
    assert_eq!((new.position, new.first), (1, 1));
    assert_eq!(client.revoked_until(new.place(), token(1)).unwrap(), None);
    assert_eq!(client.append(new.place(), id, &proposals).unwrap(), first);
    assert_eq!(changes(&all(&client, new.epoch)), [insert(1, head.tick + 50)]);
}

#[test]
fn the_server_is_killed_with_its_owner_and_keeps_what_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let Ok(mut server) = crate::engine::server::Server::start(folder.path()) else {
        return drop(Engine::start()); // Which reports why, and whether it must be there.
    };
    assert_eq!(server.say("SET kept 1").unwrap(), "+OK");
    server.shut_down();
    assert!(server.process().is_none() && server.say("PING").is_err());
    server.restart().unwrap();
    assert_eq!(server.say("STRLEN kept").unwrap(), ":1");
    server.kill();
    server.restart().unwrap();
    assert_eq!(server.say("STRLEN kept").unwrap(), ":1");
    let address = server.address();
    drop(server);
    assert!(std::net::TcpStream::connect(address).is_err());
}
