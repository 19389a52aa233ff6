//! Many tokens at a time, and what happens when there is no room for them.

use std::fs;

use crate::support::{Server, data, wait_for};
use crate::tokens::{assert_all_revoked, revoke_all, tokens};

#[test]
fn a_bulk_load_tells_how_far_it_is() {
    let data = data();
    let server = Server::start(data.path(), &[]);
    let client = server.client();
    // Three lines of five are new tokens.
    let body: String = (0..10_000).map(|i| format!("a-{i}\nb-{i}\r\n\n  c-{i} \na-{}\n", i / 2)).collect();
    let answer = client.post("/revoked/bulk", body.as_bytes());
    assert_eq!(answer.status, 202);
    assert_eq!(answer.json()["lines"], 50_000);
    let path = format!("/jobs/{}", answer.json()["job"]);
    let mut last = 0;
    let end = wait_for("the job to finish", || {
        let progress = client.get(&path).json();
        let done = progress["done"].as_u64().unwrap();
        assert!((last..=50_000).contains(&done), "{done} after {last}");
        last = done;
        (progress["finished"] == true).then_some(progress)
    });
    assert_eq!((&end["state"], &end["total"], &end["done"]), (&"finished".into(), &50_000.into(), &50_000.into()));
    assert_eq!((&end["inserted"], &end["refused"]), (&30_000.into(), &0.into()));
    for i in (0..10_000).step_by(331) {
        assert_all_revoked(&client, &[format!("a-{i}"), format!("b-{i}"), format!("c-{i}")]);
    }
    assert_eq!(client.bulk(&body)["inserted"], 0, "all of them were known");
    assert_eq!(client.get("/stats").json()["revoked"]["len"], 30_000);
    assert_eq!(client.get("/jobs/77").status, 404);

    let end = client.bulk("fine\nnot a token\nnever looked at");
    assert_eq!((&end["state"], &end["done"], &end["inserted"]), (&"stopped".into(), &1.into(), &1.into()));
    assert!(end["error"].as_str().unwrap().starts_with("line 2: "), "{end}");
    assert_eq!((client.protected("fine", None), client.protected("never", None)), (401, 200));
}

#[test]
fn a_file_is_loaded_before_the_first_request() {
    let data = data();
    let file = data.path().join("tokens");
    fs::write(&file, tokens("bad", 10_000).join("\n")).unwrap();
    let server = Server::start(data.path(), &["--load", file.to_str().unwrap()]);
    assert!(server.said().contains("10000 of 10000 lines, 10000 tokens new"), "{}", server.said());
    assert!(server.said().contains("4096 of 10000 lines"), "no progress: {}", server.said());
    assert_all_revoked(&server.client(), &["bad-0".into(), "bad-9999".into()]);
}

#[test]
fn a_full_filter_is_insufficient_storage_and_loses_nothing() {
    let data = data();
    let server = Server::start(data.path(), &["--capacity", "100"]);
    let client = server.client();
    let (mut revoked, mut refused) = (Vec::new(), Vec::new());
    for token in tokens("bad", 400) {
        let answer = client.put(&format!("/revoked/{token}"));
        match answer.status {
            201 => revoked.push(token),
            507 => {
                let body = answer.json();
                assert_eq!(body["len"], revoked.len());
                assert!(body["capacity"].as_u64().unwrap() >= 100);
                assert!(body["remedy"].as_str().unwrap().contains("--capacity"), "{body}");
                assert!(body["error"].as_str().unwrap().contains("full"), "{body}");
                refused.push(token);
            }
            status => panic!("{status}"),
        }
    }
    assert!(revoked.len() >= 100 && !refused.is_empty(), "{} {}", revoked.len(), refused.len());
    assert_all_revoked(&client, &revoked);
    // A refused token is in neither filter nor store: a restart must not bring it back.
    assert!(refused.iter().all(|token| client.protected(token, None) == 200));
    assert_eq!(client.get("/stats").json()["store_tokens"], revoked.len());

    // A bulk load ends at the token for which there is no room, and says where that was.
    let body = refused.join("\n");
    let end = client.bulk(&body);
    assert_eq!(end["state"], "full", "{end}");
    let (done, inserted) = (end["done"].as_u64().unwrap() as usize, end["inserted"].as_u64().unwrap());
    assert_eq!(inserted, done as u64);
    revoked.extend(refused.drain(..done));
    assert_all_revoked(&client, &revoked);
    assert!(refused.iter().all(|token| client.protected(token, None) == 200));

    // After one was removed, there is room for one.
    let path = format!("/revoked/{}", revoked[7]);
    assert_eq!((client.delete(&path).status, client.put(&path).status), (204, 201));

    // The remedy in the answer works.
    server.end();
    let server = Server::start(data.path(), &["--capacity", "1000"]);
    let client = server.client();
    assert!(server.said().contains("rebuilding from the store"), "{}", server.said());
    assert_all_revoked(&client, &revoked);
    revoke_all(&client, refused.clone());
    assert_all_revoked(&client, &refused);

    // A filter without some of the store's tokens must not be used.
    server.end();
    let said = Server::fails(data.path(), &["--capacity", "100"]);
    assert!(said.contains("--capacity") && said.contains("400 revoked tokens"), "{said}");
}
