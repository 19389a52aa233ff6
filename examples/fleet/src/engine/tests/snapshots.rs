//! Chunks, the list, and the lease.

use std::io::{self, Read};
use std::thread;
use std::time::{Duration, Instant};

use super::subject::*;
use crate::engine::Step;
use crate::log::{EngineError, Place, SnapshotInfo};

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 % 251) as u8).collect()
}

fn write(subject: &dyn Subject, place: Place, keep: usize, bytes: &[u8]) -> Result<SnapshotInfo, EngineError> {
    subject.snapshots().write(place, 7, "a", keep, &mut |writer| writer.write_all(bytes))
}

fn read_all(subject: &dyn Subject, info: &SnapshotInfo) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    subject.snapshots().read(info)?.read_to_end(&mut bytes).map(|_| bytes)
}

impl From<EngineError> for io::Error {
    fn from(error: EngineError) -> Self {
        Self::other(error)
    }
}

fn positions(subject: &dyn Subject, place: Place) -> Vec<u64> {
    subject.snapshots().list(place.epoch).unwrap().iter().map(|info| info.place.position).collect()
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    holds(|subject| {
        let place = agree(subject).place();
        for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 10 * CHUNK + 17] {
            let bytes = content(len);
            let info = write(subject, place, 100, &bytes).unwrap();
            let expected = SnapshotInfo {
                place,
                bytes: len as u64,
                digest: 7,
                at: start(),
                node: "a".into(),
                key: info.key.clone(),
            };
            assert_eq!(info, expected);
            let client = subject.client();
            assert!(client.snapshots().list(place.epoch).unwrap().contains(&info));
            assert_eq!(read_all(&*client, &info).unwrap(), bytes, "{len} bytes");
        }
    });
}

#[test]
fn the_list_has_the_newest_first_and_the_last_few() {
    holds(|subject| {
        let first = agree(subject).place();
        let mut keys = Vec::new();
        for position in 1..=5 {
            let place = Place { position, ..first };
            if position > 1 {
                subject.log().append(first, fresh(), &[revoke(position, tick() + 5)]).unwrap();
            }
            keys.push(write(subject, place, 3, &content(2 * CHUNK)).unwrap());
        }
        assert_eq!(positions(subject, first), [5, 4, 3]);
        // A reader of a snapshot that is gone gets an error.
        assert!(read_all(subject, &keys[0]).is_err());
        assert_eq!(read_all(subject, &keys[2]).unwrap(), content(2 * CHUNK));
        // Snapshots of another log are not for this one.
        subject.flush();
        let other = agree(subject).place();
        write(subject, other, 3, &content(1)).unwrap();
        assert_eq!(positions(subject, other), [1]);
        assert_eq!(positions(subject, first), [0; 0]);
    });
}

fn damage_is_noticed(subject: &dyn Subject) {
    let place = agree(subject).place();
    let info = write(subject, place, 3, &content(3 * CHUNK)).unwrap();
    subject.damage_chunk(1);
    let error = read_all(subject, &info).map(|bytes| bytes.len());
    let error = error.expect_err("damage is not noticed").to_string();
    assert!(error.contains("chunk 1"), "{error}");
}

#[test]
fn a_damaged_chunk_is_an_error_for_its_reader() {
    holds(damage_is_noticed);
    fails_without(Step::Checksum, "damage is not noticed", damage_is_noticed);
}

#[test]
fn a_missing_chunk_is_an_error_for_its_reader() {
    for missing in 0..3 {
        holds(|subject| {
            let info = write(subject, agree(subject).place(), 3, &content(3 * CHUNK)).unwrap();
            subject.remove_chunk(missing);
            let error = read_all(subject, &info).unwrap_err().to_string();
            assert!(error.contains(&format!("chunk {missing} of the snapshot is missing")), "{error}");
        });
    }
}

/// A snapshot that the engine does not keep as it was written is not listed, and leaves nothing behind.
fn written_is_read_back(subject: &dyn Subject) {
    let place = agree(subject).place();
    for is_damaged in [true, false] {
        let result = subject.snapshots().write(place, 7, "a", 3, &mut |writer| {
            writer.write_all(&content(3 * CHUNK))?;
            if is_damaged {
                subject.damage_chunk(1)
            } else {
                subject.remove_chunk(1)
            };
            Ok(())
        });
        assert!(matches!(result, Err(EngineError::Damaged(_))), "what is not kept is listed: {result:?}");
        assert_eq!(positions(subject, place), [0; 0]);
    }
    write(subject, place, 3, &content(3 * CHUNK)).unwrap();
    assert_eq!(positions(subject, place), [1]);
}

#[test]
fn a_snapshot_that_is_not_kept_as_it_was_written_is_not_listed() {
    holds(written_is_read_back);
    fails_without(Step::ReadBack, "what is not kept is listed", written_is_read_back);
}

#[test]
fn a_snapshot_whose_writer_fails_is_not_listed() {
    holds(|subject| {
        let place = agree(subject).place();
        let failed = subject.snapshots().write(place, 7, "a", 3, &mut |writer| {
            writer.write_all(&content(2 * CHUNK))?;
            Err(io::Error::other("broken"))
        });
        assert!(matches!(failed, Err(EngineError::Content(_))), "{failed:?}");
        assert_eq!(positions(subject, place), [0; 0]);
    });
}

fn lease_is_one_nodes(subject: &dyn Subject) {
    let lease = |node| subject.snapshots().lease(node, LONG).unwrap();
    assert!(lease("a"));
    assert!(!lease("b"), "two have it");
    assert!(lease("a"), "the holder gets it anew");
    subject.snapshots().give_back("b").unwrap();
    assert!(!lease("b"), "two have it");
    subject.snapshots().give_back("a").unwrap();
    assert!(lease("b"));
    assert!(!lease("a"), "two have it");
}

#[test]
fn one_node_has_the_lease() {
    holds(lease_is_one_nodes);
    fails_without(Step::Lease, "two have it", lease_is_one_nodes);
}

#[test]
fn a_lease_ends_by_itself() {
    holds(|subject| {
        assert!(subject.snapshots().lease("a", Duration::from_millis(100)).unwrap());
        let (mut time, deadline) = (start(), Instant::now() + LONG);
        while !subject.snapshots().lease("b", LONG).unwrap() {
            assert!(Instant::now() < deadline, "it does not end");
            thread::sleep(Duration::from_millis(20));
            // One engine measures the lease by this clock, the other by the machine's.
            time += 20;
            subject.set_time(time);
        }
    });
}
