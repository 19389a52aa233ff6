//! Snapshots that are damaged, old, missing or another store's: the server starts without them, and says so.

use std::fs;

use crate::support::{Server, data};
use crate::tokens::{assert_all_revoked, revoke_all, tokens};

/// Identifiers are in no store, so the server must say which ones are lost.
#[test]
fn a_gap_in_the_identifiers_is_told() {
    let data = data();
    let snapshot = data.path().join("request-ids.snapshot");
    let since = |server: &Server| server.client().get("/stats").json()["request_ids_known_since"].as_u64().unwrap();
    let server = Server::start(data.path(), &[]);
    let first = since(&server);
    assert_eq!(server.client().protected("good", Some("saved")), 200);
    server.end();

    let server = Server::start(data.path(), &[]);
    assert!(!server.said().contains("pass once more"), "{}", server.said());
    assert_eq!(since(&server), first);
    assert_eq!(server.client().protected("good", Some("unsaved")), 200);
    server.kill();

    let server = Server::start(data.path(), &[]);
    assert!(server.said().contains("those since the last snapshot pass once more"), "{}", server.said());
    assert!(since(&server) >= first);
    assert_eq!(server.client().protected("good", Some("saved")), 409);
    server.end();

    // A period of another length numbers the generations differently.
    let server = Server::start(data.path(), &["--window", "700"]);
    assert!(server.said().contains("--window and --generations were different"), "{}", server.said());
    server.end();

    let mut bytes = fs::read(&snapshot).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&snapshot, bytes).unwrap();
    let server = Server::start(data.path(), &["--window", "700"]);
    assert!(server.said().contains("those seen before now pass once more"), "{}", server.said());
    assert_eq!(server.client().protected("good", Some("saved")), 200);
}

#[test]
fn with_a_damaged_snapshot_the_filter_is_rebuilt() {
    let data = data();
    let snapshot = data.path().join("revoked.snapshot");
    let revoked = tokens("bad", 300);
    let server = Server::start(data.path(), &[]);
    revoke_all(&server.client(), revoked.clone());
    server.end();
    let whole = fs::read(&snapshot).unwrap();
    assert_eq!(whole.len() as u64, fs::metadata(&snapshot).unwrap().len());

    let mut damaged: Vec<Vec<u8>> =
        vec![Vec::new(), whole[..whole.len() / 2].to_vec(), whole[..whole.len() - 1].to_vec()];
    damaged.push([whole.as_slice(), b"!"].concat());
    // In the version, the hasher's probe, the schema, the position, the attachment, the table's header, its body and
    // the checksum.
    for place in [9, 12, 30, 60, 75, 90, whole.len() / 2, whole.len() - 2] {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        damaged.push(bytes);
    }
    for bytes in damaged {
        fs::write(&snapshot, &bytes).unwrap();
        let server = Server::start(data.path(), &[]);
        assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
        assert_all_revoked(&server.client(), &revoked);
        server.kill();
    }
}

/// The snapshot is intact, but belongs to another store or to an earlier state of this one.
#[test]
fn a_snapshot_that_does_not_belong_to_the_store_is_not_used() {
    let (data, other) = (data(), data());
    let (snapshot, key) = ("revoked.snapshot", "key");
    let server = Server::start(data.path(), &[]);
    revoke_all(&server.client(), tokens("bad", 10));
    server.end();
    let old = fs::read(data.path().join(snapshot)).unwrap();

    // From an earlier day: the lists of what was revoked since are gone.
    let server = Server::start(data.path(), &[]);
    revoke_all(&server.client(), tokens("later", 10));
    server.end();
    fs::write(data.path().join(snapshot), &old).unwrap();
    let server = Server::start(data.path(), &[]);
    assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
    assert_all_revoked(&server.client(), &tokens("later", 10));
    server.end();

    // From another store, with the same key.
    fs::copy(data.path().join(key), other.path().join(key)).unwrap();
    let server = Server::start(other.path(), &[]);
    revoke_all(&server.client(), tokens("other", 25));
    server.end();
    fs::copy(data.path().join(snapshot), other.path().join(snapshot)).unwrap();
    let server = Server::start(other.path(), &[]);
    assert!(server.said().contains("another store"), "{}", server.said());
    assert_all_revoked(&server.client(), &tokens("other", 25));
    server.end();

    // The key was lost, so all hashes differ.
    fs::remove_file(data.path().join(key)).unwrap();
    let server = Server::start(data.path(), &[]);
    assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
    assert_all_revoked(&server.client(), &tokens("later", 10));
}
