//! Measures a node beside a server that asks Redis `EXISTS` for each request, and one that asks nobody, in one run: requests
//! a second for tokens that are not revoked, and for tokens that are. And what a token takes in the engine, and how long a
//! node takes to join.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use axum::{Json, Router};
use fleet::testing::server::Server;
use fleet::{EngineSettings, Node, RedisEngine, Settings};
use redis::aio::ConnectionManager;
use tokens::token::bearer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many tokens are revoked
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    tokens: u64,

    /// How many clients ask at the same time
    #[arg(long, value_name = "N", default_value_t = 256)]
    clients: usize,

    /// How many rounds. In each, every server is measured once
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,

    /// How long each measurement takes, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    time: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(folder.path()).map_err(|error| error.to_string())?;
    let measuring = async { measure(arguments, &server).await.map_err(|error| error.to_string()) };
    super::runtime()?.block_on(measuring)
}

async fn measure(arguments: &Arguments, server: &Server) -> Result<(), Box<dyn std::error::Error>> {
    let settings = Settings { capacity: 2 * arguments.tokens as usize + 1000, ..Settings::new([7; 16]) };
    let start = async || {
        let engine = RedisEngine::new(EngineSettings::new(&server.url(), "bench"))?;
        let begin = Instant::now();
        let node = Arc::new(Node::start(settings.clone(), Arc::new(engine)).await?);
        while !node.is_ready() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok::<_, Box<dyn std::error::Error>>((node, begin.elapsed()))
    };
    let (node, _) = start().await?;
    let mut redis = ConnectionManager::new(redis::Client::open(server.url())?).await?;
    let memory = async |redis: &mut ConnectionManager| -> redis::RedisResult<u64> {
        let info: String = redis::cmd("INFO").arg("memory").query_async(redis).await?;
        let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse().ok());
        Ok(used.unwrap_or_default())
    };

    let (before, begin) = (memory(&mut redis).await?, Instant::now());
    let until = node.time()? + 3600;
    let numbers = Arc::new(AtomicU64::new(0));
    let writers: Vec<_> = (0..1000)
        .map(|_| {
            let (node, numbers, tokens) = (Arc::clone(&node), Arc::clone(&numbers), arguments.tokens);
            tokio::spawn(async move {
                loop {
                    match numbers.fetch_add(1, Ordering::Relaxed) {
                        number if number < tokens => node.revoke(&format!("revoked-{number}"), until).await?,
                        _ => return Ok::<_, fleet::NodeError>(()),
                    };
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }
    let per_second = arguments.tokens as f64 / begin.elapsed().as_secs_f64();
    // The log goes away with the next snapshots, and the identifiers after some minutes.
    redis::cmd("XTRIM").arg("{bench}:log").arg("MAXLEN").arg(0).query_async::<()>(&mut redis).await?;
    let bytes = (memory(&mut redis).await? - before) as f64 / arguments.tokens as f64;
    println!("{} tokens revoked, 1,000 at a time: {per_second:.0} a second", arguments.tokens);
    println!("a token takes {bytes:.0} bytes in the engine, without the log, with its share of an identifier");
    let (other, joined) = start().await?;
    println!("a node rebuilds its filter from the record and is ready after {joined:.2?}\n");
    other.end().await;

    let mut pipe = redis::pipe();
    for number in 0..1000 {
        pipe.cmd("SET").arg(format!("plain:revoked-{number}")).arg(1).ignore();
    }
    pipe.query_async::<()>(&mut redis).await?;
    let plain = Router::new().route("/protected", get(exists)).with_state(redis);
    let plain = serve(plain).await?;
    let nobody = serve(Router::new().route("/protected", get(asks_nobody))).await?;
    let address = serve(fleet::http::router(Arc::clone(&node), None, Arc::default())).await?;
    let (mut limit, mut absent, mut revoked) = (Vec::new(), Vec::new(), Vec::new());
    println!(
        "requests a second, {} clients   EXISTS absent, revoked     node absent, revoked   nobody",
        arguments.clients
    );
    for _ in 0..arguments.rounds {
        let mut rates = Vec::new();
        for (address, token, status) in [
            (plain, "fine", 200),
            (plain, "revoked", 401),
            (address, "fine", 200),
            (address, "revoked", 401),
            (nobody, "fine", 200),
        ] {
            rates.push(load(arguments, address, token, status).await?);
        }
        let [exists_absent, exists_revoked, node_absent, node_revoked, asks_nobody] = rates[..] else { continue };
        println!("{exists_absent:45.0} {exists_revoked:8.0} {node_absent:15.0} {node_revoked:8.0} {asks_nobody:8.0}");
        limit.push(asks_nobody / exists_absent);
        absent.push(node_absent / exists_absent);
        revoked.push(node_revoked / exists_revoked);
    }
    node.end().await;
    for (what, ratios) in
        [("a server that asks nobody", &mut limit), ("not revoked", &mut absent), ("revoked", &mut revoked)]
    {
        ratios.sort_by(f64::total_cmp);
        let (median, last) = (ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        println!("{what}: {median:.2} times EXISTS [{:.2}, {last:.2}]", ratios[0]);
    }
    Ok(())
}

/// The most that a server can do here.
async fn asks_nobody(headers: HeaderMap) -> Result<Json<&'static str>, StatusCode> {
    bearer(&headers).map_err(|_| StatusCode::BAD_REQUEST)?;
    Ok(Json("ok"))
}

/// The server beside: one question to Redis for each request, on one multiplexed connection.
async fn exists(
    State(mut redis): State<ConnectionManager>,
    headers: HeaderMap,
) -> Result<Json<&'static str>, StatusCode> {
    let token = bearer(&headers).map_err(|_| StatusCode::BAD_REQUEST)?;
    let asked = redis::cmd("EXISTS").arg(format!("plain:{token}")).query_async(&mut redis).await;
    match asked.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)? {
        false => Ok(Json("ok")),
        true => Err(StatusCode::UNAUTHORIZED),
    }
}

async fn serve(router: Router) -> std::io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}

/// Requests a second. Each client has a connection, and sends its next request when it has the answer to the last.
async fn load(
    arguments: &Arguments,
    address: std::net::SocketAddr,
    token: &'static str,
    status: u16,
) -> Result<f64, Box<dyn std::error::Error>> {
    let (is_over, begin) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let clients: Vec<_> = (0..arguments.clients)
        .map(|client| {
            let is_over = Arc::clone(&is_over);
            tokio::spawn(async move {
                let mut stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                let (mut answered, mut answer) = (0_u64, vec![0; 4096]);
                let request = format!(
                    "GET /protected HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}-{}\r\n\r\n",
                    client % 1000
                );
                while !is_over.load(Ordering::Relaxed) {
                    stream.write_all(request.as_bytes()).await?;
                    // Answers are short, and come in one piece.
                    let read = stream.read(&mut answer).await?;
                    let line = format!("HTTP/1.1 {status} ");
                    if !answer[..read].starts_with(line.as_bytes()) {
                        return Err(std::io::Error::other(String::from_utf8_lossy(&answer[..read]).into_owned()));
                    }
                    answered += 1;
                }
                Ok(answered)
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(arguments.time)).await;
    is_over.store(true, Ordering::Relaxed);
    let mut answered = 0;
    for client in clients {
        answered += client.await??;
    }
    Ok(answered as f64 / begin.elapsed().as_secs_f64())
}
