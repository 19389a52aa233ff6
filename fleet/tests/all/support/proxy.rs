//! The network between two programs, which fails as networks do.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// What becomes of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Forward,
    /// Nothing arrives, in both directions. A connection that has lost something stays silent.
    Silent,
    /// The same for answers alone: what is asked is done, and nobody hears of it.
    SilentAnswers,
    /// All connections are closed, and new ones too.
    Cut,
    /// Everything arrives this much later.
    Late(Duration),
    /// Each answer arrives twice.
    Twice,
}

#[derive(Default)]
struct Shared {
    mode: Mutex<Mode>,
    /// Members of etcd that get no connection, by the identifier that they send.
    blocked: Mutex<HashSet<String>>,
    /// Closes all connections.
    cut: watch::Sender<()>,
}

impl Shared {
    /// Whether this is a request of a member that gets no connection.
    fn blocks(&self, request: &[u8]) -> bool {
        let (blocked, request) = (self.blocked.lock().unwrap(), || String::from_utf8_lossy(request));
        blocked.iter().any(|member| request().contains(&format!("X-Server-From: {member}\r\n")))
    }
}

/// A port that leads to another one, as long as this process lives.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    pub(crate) fn start(listener: std::net::TcpListener, to: SocketAddr) -> Self {
        let (address, shared) = (listener.local_addr().unwrap(), Arc::new(Shared::default()));
        listener.set_nonblocking(true).unwrap();
        let accepting = accept(listener, to, Arc::clone(&shared));
        // In a thread of its own, because tests block theirs.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        thread::spawn(move || runtime.block_on(accepting));
        Self { address, shared }
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
        if mode == Mode::Cut {
            self.shared.cut.send_replace(());
        }
    }

    /// All goes well again, and what has lost something meanwhile is closed.
    pub(crate) fn mend(&self) {
        self.set(Mode::Cut);
        self.set(Mode::Forward);
    }

    pub(crate) fn block(&self, member: &str, is_blocked: bool) {
        let mut blocked = self.shared.blocked.lock().unwrap();
        if is_blocked {
            blocked.insert(member.to_owned());
            self.shared.cut.send_replace(());
        } else {
            blocked.remove(member);
        }
    }
}

async fn accept(listener: std::net::TcpListener, to: SocketAddr, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        let (shared, mut cut) = (Arc::clone(&shared), shared.cut.subscribe());
        tokio::spawn(async move {
            // What can't be served is closed.
            tokio::select! {
                _ = serve(client, to, &shared) => {}
                _ = cut.changed() => {}
            }
        });
    }
}

/// Carries both directions until one of them ends.
async fn serve(client: TcpStream, to: SocketAddr, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    tokio::select! {
        done = carry(from_client, to_server, false, shared) => done,
        done = carry(from_server, to_client, true, shared) => done,
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_answer: bool, shared: &Shared) -> io::Result<()> {
    // What is late keeps its distances: so a request that is given up comes before the word that it was.
    let (sent, mut arriving) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    let receive = async move {
        let (mut buffer, mut is_silent) = (vec![0; 1 << 16], false);
        loop {
            let read = from.read(&mut buffer).await?;
            let (bytes, mode) = (&buffer[..read], *shared.mode.lock().unwrap());
            if read == 0 || mode == Mode::Cut || (!is_answer && shared.blocks(bytes)) {
                return Ok(());
            }
            is_silent |= mode == Mode::Silent || (mode == Mode::SilentAnswers && is_answer);
            let late = if let Mode::Late(time) = mode { time } else { Duration::ZERO };
            let times = match mode {
                _ if is_silent => 0,
                Mode::Twice if is_answer => 2,
                _ => 1,
            };
            for _ in 0..times {
                // Its receiver lives as long.
                _ = sent.send((Instant::now() + late, bytes.to_vec()));
            }
        }
    };
    let deliver = async {
        while let Some((due, bytes)) = arriving.recv().await {
            sleep_until(due).await;
            to.write_all(&bytes).await?;
        }
        Ok(())
    };
    tokio::try_join!(receive, deliver).map(drop)
}
