//! What a fleet does when nothing fails.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_refuse_what_one_has_acknowledged_and_nothing_else() {
    let Some((_cluster, nodes)) = three().await else { return };
    let until_then = nodes[0].time() + 600;
    let done = nodes[0].revoke("alice", until_then).await.unwrap();
    assert_eq!((done.until, done.is_new), (Some(until_then), true));
    assert!(nodes[0].is_revoked("alice").await.unwrap(), "at once, by the node that has acknowledged it");
    for node in &nodes {
        until("all nodes to know", async || (node.is_revoked("alice").await == Ok(true)).then_some(())).await;
        assert_eq!(node.revoked_until("alice").await, Ok(Some(until_then)));
        assert_eq!(node.is_revoked("bob").await, Ok(false));
    }
    // A shorter time changes nothing, and a longer one is longer.
    let again = nodes[1].revoke("alice", until_then - 300).await.unwrap();
    assert_eq!((again.until, again.is_new), (Some(until_then), false));
    let longer = nodes[1].revoke("alice", until_then + 300).await.unwrap();
    assert_eq!((longer.until, longer.is_new), (Some(until_then + 300), true));
    assert_eq!(nodes[2].restore("alice").await, Ok(true));
    assert_eq!(nodes[2].is_revoked("alice").await, Ok(false));
    assert_eq!(nodes[1].restore("alice").await, Ok(false));
    for node in &nodes {
        until("all nodes to know", async || (node.is_revoked("alice").await == Ok(false)).then_some(())).await;
        ready(node).await;
        // One entry for a token, also when its time was extended.
        until("no entry", async || (node.health().len == Some(0)).then_some(())).await;
    }
}
