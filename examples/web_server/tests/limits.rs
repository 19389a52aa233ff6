//! The server over HTTP, with many clients: each has a limit of its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use clap::Parser;
use tempfile::tempdir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use web_server::limited::{Client, Clients};
use web_server::server::{Shared, router};
use web_server::{Options, revoked::Revoked, seen::Seen};

/// A server with these options, on a port of its own.
async fn serve(options: &[&str]) -> (SocketAddr, Arc<Shared>) {
    let data = tempdir().unwrap();
    let program = ["web-server", "--data", data.path().to_str().unwrap(), "--capacity=100", "--ids=100"];
    let options = Options::parse_from([&program, options].concat());
    let clock = Arc::new(|| 1_800_000_000);
    let (revoked, seen) = (Revoked::open(&options, clock).unwrap(), Seen::new(&options).unwrap());
    let shared = Arc::new(Shared { revoked, seen, clients: Clients::new(&options).unwrap() });
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = router(&shared).into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    (address, shared)
}

/// Sends a request from this address, and returns the status and the head of the answer.
async fn get(server: SocketAddr, from: Ipv4Addr) -> (u16, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    let request = "GET /protected HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer good\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect(&answer);
    (status, answer.to_lowercase())
}

/// Linux has all addresses that begin with 127. All clients send at the same time, and more than they may.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_of_many_clients_is_limited_by_itself() {
    // Of a limit of one per minute, none is earned during the test.
    let (server, shared) = serve(&["--limit=1", "--burst=5", "--clients=1000"]).await;
    let client = |nth: u8| async move {
        let from = Ipv4Addr::new(127, 0, 1, nth);
        let requests: JoinSet<_> = (0..8).map(|_| get(server, from)).collect();
        let answers = requests.join_all().await;
        for (status, answer) in &answers {
            let seconds = answer.lines().find_map(|line| line.strip_prefix("retry-after: "));
            let seconds = seconds.map(|seconds| seconds.parse::<u64>().expect("whole seconds"));
            assert_eq!(seconds.is_some(), *status == 429, "{answer}");
            assert!(seconds.is_none_or(|seconds| (1..=60).contains(&seconds)), "{answer}");
        }
        (answers.iter().filter(|(status, _)| *status == 200).count(), answers.len())
    };
    let clients: JoinSet<_> = (0..60).map(client).collect();
    let served = clients.join_all().await;
    // At most one in 1,000 looks like another one, and shares its limit.
    assert!(served.iter().all(|&(served, _)| served <= 5), "{served:?}");
    assert!(served.iter().filter(|&&(served, _)| served == 5).count() >= 57, "{served:?}");
    let limits = shared.clients.limiter.stats().limiter.unwrap();
    assert_eq!((limits.allowed + limits.rejected, limits.evicted), (60 * 8, 0));
}

#[tokio::test]
async fn a_client_that_sends_too_many_is_told_when_to_come_again() {
    let (server, _) = serve(&["--limit=1", "--burst=1"]).await;
    assert_eq!(get(server, Ipv4Addr::LOCALHOST).await.0, 200);
    let (status, answer) = get(server, Ipv4Addr::LOCALHOST).await;
    assert!(status == 429 && answer.contains("\r\nretry-after: "), "{answer}");
}

#[test]
fn addresses_of_one_network_of_ipv6_are_one_client() {
    let client = |text: &str| Client::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(client("2001:db8:1:2::1"), client("2001:db8:1:2:ffff:ffff:ffff:ffff"));
    assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
    assert_eq!(client("::ffff:203.0.113.7"), Client::V4(Ipv4Addr::new(203, 0, 113, 7)));
    assert_ne!(client("203.0.113.7"), client("203.0.113.8"));
    assert_eq!(Client::from(IpAddr::V6(Ipv6Addr::LOCALHOST)), Client::V6(0));
}
