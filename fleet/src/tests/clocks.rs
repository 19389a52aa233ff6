//! Clocks that are set, and machines that sleep.

use concurrent_cuckoo_filter::Hashed;

use super::*;

const HOUR: i64 = 3600;

/// Sets the machine's clock of a node.
fn set(node: &Node, seconds: i64) {
    node.shared().clock.shift[0].store(seconds, Ordering::SeqCst);
}

/// Lets time pass, for this node alone.
fn pass(node: &Node, seconds: i64) {
    node.shared().clock.shift[0].fetch_add(seconds, Ordering::SeqCst);
    node.shared().clock.shift[1].fetch_add(seconds, Ordering::SeqCst);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_ends_nothing_early_and_stops_no_changes() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let node = Arc::new(start(settings(&cluster.urls(0))).await);
    let other = start(settings(&cluster.urls(1))).await;
    revoke(&node, "alice").await;
    // Also while the clock is being set. (A storm found a moment at which it was not so.)
    let asking = Asking::start(&node, "alice");
    for seconds in [12, -12, HOUR, -HOUR, 24 * HOUR, -24 * HOUR, 400 * 24 * HOUR, -400 * 24 * HOUR, 0] {
        set(&node, seconds);
        ready(&node).await;
        for node in [&*node, &other] {
            assert!(answer(node, "alice").await && !answer(node, "bob").await, "set by {seconds} s");
        }
        let token = format!("at {seconds}").replace(' ', "-");
        // By a real clock: the client has its own.
        let exp = other.time() + 1800;
        until("a change", async || node.revoke(&token, exp).await.ok()).await;
        assert!(answer(&node, &token).await, "set by {seconds} s");
        until("the other to know", async || answer(&other, &token).await.then_some(())).await;
        until("it to be restored", async || node.restore(&token).await.ok()).await;
    }
    asking.check().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_started_with_a_wrong_clock_is_right_when_that_is_set() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let other = start(settings(&cluster.urls(0))).await;
    revoke(&other, "alice").await;
    let wrong = async |seconds: i64| start_with(settings(&cluster.urls(0)), Clock::with_shift(seconds)).await;
    let node = wrong(2 * HOUR).await;
    assert!(!answer(&node, "alice").await, "a node that starts with a wrong clock believes it");
    set(&node, 0);
    assert!(answer(&node, "alice").await);
    ready(&node).await;
    assert!(answer(&node, "alice").await);
    // All nodes see that the clock of the one that makes a change differs.
    let behind = wrong(-2 * HOUR).await;
    until("the difference to be seen", async || {
        _ = behind.revoke("carol", behind.time() + 1800).await;
        _ = behind.restore("carol").await;
        (other.health().clock_difference < -HOUR).then_some(())
    })
    .await;
}

/// A node whose clock is ahead may write ends that the filters of others can't hold.
#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_is_too_far_ahead_is_kept() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let ahead = start(settings(&cluster.urls(0))).await;
    let node = start(settings(&cluster.urls(1))).await;
    set(&ahead, 24 * HOUR);
    let end = node.time() + 10 * 3600;
    ahead.revoke("alice", end).await.unwrap();
    until("it to know", async || answer(&node, "alice").await.then_some(())).await;
    // Hour after hour, as the machine's clock and the monotonic one go on.
    for _ in 0..6 {
        pass(&node, 1000);
        ready(&node).await;
    }
    assert!(answer(&node, "alice").await);
}

/// A storm found this: entries that end before their tokens do had expired for a moment before the node joined again.
#[test]
fn a_filter_that_has_to_be_left_keeps_its_entries() {
    let settings = settings("http://127.0.0.1:1");
    let clock = Clock::with_shift(-24 * HOUR);
    let known = crate::filter::Known::new(&settings, &clock, 10).unwrap();
    known.put(Hashed(17), Clock::new().earliest() + 1800, None).unwrap();
    assert!(known.advance());
    clock.shift[0].store(0, Ordering::SeqCst);
    clock.shift[1].store(24 * HOUR, Ordering::SeqCst);
    known.knows_all_of(clock.now());
    assert!(!known.advance(), "the node has to join again");
    assert_ne!(known.lookup(Hashed(17)), crate::filter::Verdict::NotRevoked);
}
