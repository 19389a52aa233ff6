//! CONCURRENT: a proxy that takes the place of the network between a node and the engine, and fails as networks do.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a connection without traffic checks whether the mode has changed.
const LOOK: Duration = Duration::from_millis(10);

/// What the proxy does with the bytes that it receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Forwards them.
    #[default]
    Forward,
    /// Takes them and sends nothing, in both directions, like a cable that is cut. A direction of a
    /// connection that has lost something this way stays silent until the connection is closed.
    Swallow,
    /// The same for the answers alone: the engine does what is asked, and the node never hears of it.
    SwallowAnswers,
    /// Closes all connections, and each new one at once.
    Cut,
    /// Forwards everything this much later.
    Delay(Duration),
    /// Forwards nothing, and gives this answer to everything.
    Answer(Vec<u8>),
}

/// A proxy on a port of the loopback interface. Its connections end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Where it forwards to.
    to: Mutex<SocketAddr>,
    mode: Mutex<Mode>,
    ended: AtomicBool,
    /// How many connections wait for an answer from the engine.
    unanswered: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy that forwards to this address.
    pub fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            to: Mutex::new(to),
            mode: Mutex::default(),
            ended: AtomicBool::default(),
            unanswered: AtomicUsize::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::Builder::new().name("proxy".into()).spawn(move || accept(&listener, &accepting))?;
        Ok(Self { address, shared })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same, as a URL for a Redis client.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Changes the mode, also for open connections.
    pub fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }

    /// Closes all connections. The next ones lead to this address.
    pub fn lead_to(&self, to: SocketAddr) {
        self.set(Mode::Cut);
        *self.shared.to.lock().unwrap_or_else(PoisonError::into_inner) = to;
        thread::sleep(LOOK * 5);
        self.set(Mode::Forward);
    }

    /// How many connections have sent something to the engine and have received nothing since. An answer that the
    /// proxy swallows counts as received. So once this is 0, the answers to all earlier requests are either
    /// delivered or lost.
    pub fn unanswered(&self) -> usize {
        self.shared.unanswered.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, so that it sees the end.
        _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn mode(&self) -> Mode {
        self.mode.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming() {
        if shared.has_ended() {
            return;
        }
        // A connection that can't be served is closed, and its client notices that.
        if let Ok(client) = client
            && shared.mode() != Mode::Cut
        {
            _ = serve(client, shared);
        }
    }
}

/// What the two directions of a connection share.
#[derive(Debug, Default)]
struct Connection {
    /// Whether questions or answers were lost. That direction stays silent.
    silent: [AtomicBool; 2],
    /// The engine has not answered the last request yet.
    waits: AtomicBool,
}

impl Connection {
    fn waits(&self, waits: bool, shared: &Shared) {
        match (self.waits.swap(waits, Ordering::SeqCst), waits) {
            (false, true) => _ = shared.unanswered.fetch_add(1, Ordering::SeqCst),
            (true, false) => _ = shared.unanswered.fetch_sub(1, Ordering::SeqCst),
            _ => {}
        }
    }
}

/// One thread for each direction.
fn serve(client: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let engine = TcpStream::connect(*shared.to.lock().unwrap_or_else(PoisonError::into_inner))?;
    let state = Arc::new(Connection::default());
    for (from, to, is_answer) in [(&client, &engine, false), (&engine, &client, true)] {
        from.set_read_timeout(Some(LOOK))?;
        from.set_nodelay(true)?;
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        let (shared, state) = (Arc::clone(shared), Arc::clone(&state));
        let spawned = thread::Builder::new().name("proxy".into()).spawn(move || {
            // Either way the connection ends.
            _ = carry(&from, &to, is_answer, &shared, &state);
            state.waits(false, &shared);
            _ = from.shutdown(Shutdown::Both);
            _ = to.shutdown(Shutdown::Both);
        });
        spawned?;
    }
    Ok(())
}

fn carry(
    mut from: &TcpStream,
    mut to: &TcpStream,
    is_answer: bool,
    shared: &Shared,
    state: &Connection,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while !shared.has_ended() {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        let mode = shared.mode();
        if mode == Mode::Cut {
            return Ok(());
        }
        if read == 0 {
            continue;
        }
        let silent = &state.silent[usize::from(is_answer)];
        let is_silent = silent.load(Ordering::Relaxed);
        if is_answer || !is_silent {
            state.waits(!is_answer, shared);
        }
        if is_silent {
            continue;
        }
        match mode {
            Mode::Forward | Mode::Cut => to.write_all(&buffer[..read])?,
            Mode::Swallow => silent.store(true, Ordering::Relaxed),
            Mode::SwallowAnswers if is_answer => silent.store(true, Ordering::Relaxed),
            Mode::SwallowAnswers => to.write_all(&buffer[..read])?,
            Mode::Delay(time) => {
                thread::sleep(time);
                to.write_all(&buffer[..read])?;
            }
            Mode::Answer(answer) if !is_answer => {
                from.write_all(&answer)?;
            }
            Mode::Answer(_) => {}
        }
    }
    Ok(())
}
