//! Measures a node beside a server that asks etcd for each request, and one that asks nobody, in one run. And changes, and
//! joining. These are the figures of the README.
//!
//! ```sh
//! cargo run --release -p concurrent-cuckoo-fleet --example bench -- --rounds 3 --etcd URLS_OF_AN_EMPTY_CLUSTER
//! ```

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use axum::serve::ListenerExt;
use clap::Parser;
use fleet::http::{Service, bearer, router};
use fleet::{Etcd, Node, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// How many clients ask at the same time.
const CLIENTS: usize = 256;

/// How long each measurement takes.
const TIME: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// An empty cluster
    #[command(flatten)]
    etcd: Etcd,

    /// How many tokens are revoked
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    tokens: u64,

    /// How many rounds. In each, every server is measured once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    measure(&Arguments::parse()).await
}

/// A node of a new fleet, and how long it took to be ready.
async fn start(arguments: &Arguments) -> Result<(Arc<Node>, Duration), Failed> {
    let capacity = 2 * arguments.tokens as usize + 1000;
    let fleet = format!("bench-{}", std::process::id());
    let settings = Settings { capacity, fleet, etcd: arguments.etcd.clone(), ..Settings::new([7; 16]) };
    let begin = Instant::now();
    let node = Node::start(settings).await?;
    while !node.is_ready() {
        if begin.elapsed() > Duration::from_secs(120) {
            return Err(format!("the node is not ready: {:?}", node.health()).into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok((Arc::new(node), begin.elapsed()))
}

async fn measure(arguments: &Arguments) -> Result<(), Failed> {
    let (node, _) = start(arguments).await?;
    let (begin, until, tokens) = (Instant::now(), node.time() + 3600, arguments.tokens);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..1000 {
        let node = Arc::clone(&node);
        writers.spawn(async move {
            for number in (writer..tokens).step_by(1000) {
                node.revoke(&format!("revoked-{number}"), until).await?;
            }
            Ok::<_, fleet::NodeError>(())
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    println!("{tokens} tokens revoked, 1,000 at a time: {:.0} a second", tokens as f64 / begin.elapsed().as_secs_f64());

    let ((one, took), (another, took_too)) = (start(arguments).await?, start(arguments).await?);
    println!("nodes with {tokens} tokens are ready {took:.2?} and {took_too:.2?} after their start");

    let mut took = Vec::new();
    for number in 0..500 {
        let token = format!("seen-{number}");
        let begin = Instant::now();
        node.revoke(&token, until).await?;
        let acknowledged = Instant::now();
        for other in [&one, &another] {
            while !other.is_revoked(&token).await? {
                tokio::task::yield_now().await;
            }
        }
        took.push((acknowledged - begin, acknowledged.elapsed()));
    }
    let of = |mut times: Vec<Duration>| {
        times.sort();
        format!("{:.2?} median, {:.2?} at 99%", times[times.len() / 2], times[times.len() * 99 / 100])
    };
    println!("one change: acknowledged after {}", of(took.iter().map(|times| times.0).collect()));
    println!("from then until two other nodes refuse: {}\n", of(took.iter().map(|times| times.1).collect()));
    drop((one, another));

    let service = Service::new(Node::start(node.settings().clone()).await?, Vec::new())?;
    let asks_nobody = Router::new().route("/protected", get(asks_nobody));
    let asks_etcd = Router::new().route("/protected", get(asks_etcd)).with_state(Arc::clone(&node));
    let (ours, etcd, nobody) = (serve(router(service)).await?, serve(asks_etcd).await?, serve(asks_nobody).await?);
    let mut rounds = Vec::new();
    println!("requests a second: a node, not revoked and revoked; etcd asked, the same; nobody asked");
    for _ in 0..arguments.rounds {
        let mut rates = [0.0; 5];
        let asked = [
            (ours, "fine", 200),
            (ours, "revoked", 401),
            (etcd, "fine", 200),
            (etcd, "revoked", 401),
            (nobody, "fine", 200),
        ];
        for (rate, (address, token, status)) in rates.iter_mut().zip(asked) {
            *rate = load(address, token, status).await?;
        }
        println!("{}", rates.map(|rate| format!("{rate:9.0}")).join(""));
        rounds.push(rates);
    }
    for (name, one, other) in [
        ("not revoked, to asking nobody", 0, 4),
        ("revoked, to asking etcd", 1, 3),
        ("not revoked, to asking etcd", 0, 2),
        ("asking nobody, to asking etcd", 4, 2),
    ] {
        let mut ratios: Vec<_> = rounds.iter().map(|rates| rates[one] / rates[other]).collect();
        ratios.sort_by(f64::total_cmp);
        println!("{name}: {:.2} [{:.2}, {:.2}]", ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1]);
    }
    Ok(())
}

/// The most that a server can do here.
async fn asks_nobody(headers: HeaderMap) -> Result<&'static str, StatusCode> {
    bearer(&headers).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok("{\"ok\":true}")
}

/// The server beside: one question to a quorum for each request.
async fn asks_etcd(State(node): State<Arc<Node>>, headers: HeaderMap) -> Result<&'static str, StatusCode> {
    let token = bearer(&headers).map_err(|_| StatusCode::BAD_REQUEST)?;
    match node.ask_etcd(token).await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)? {
        None => Ok("{\"ok\":true}"),
        Some(_) => Err(StatusCode::UNAUTHORIZED),
    }
}

/// Serves on any port.
async fn serve(router: Router) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // It may have ended with its client.
    let listener = listener.tap_io(|stream| _ = stream.set_nodelay(true));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// Requests a second. Each client has a connection, and sends its next request when it has the answer to the last.
async fn load(address: SocketAddr, token: &'static str, status: u16) -> Result<f64, Failed> {
    let begin = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        clients.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (mut answered, mut answer) = (0_u64, vec![0; 4096]);
            let request =
                format!("GET /protected HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}-{client}\r\n\r\n");
            while begin.elapsed() < TIME {
                stream.write_all(request.as_bytes()).await?;
                // Answers are short, and come in one piece.
                let read = stream.read(&mut answer).await?;
                if !answer[..read].starts_with(format!("HTTP/1.1 {status} ").as_bytes()) {
                    return Err(std::io::Error::other(String::from_utf8_lossy(&answer[..read]).into_owned()));
                }
                answered += 1;
            }
            Ok(answered)
        });
    }
    let mut answered = 0;
    while let Some(client) = clients.join_next().await {
        answered += client??;
    }
    Ok(answered as f64 / begin.elapsed().as_secs_f64())
}
