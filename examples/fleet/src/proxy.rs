//! CONCURRENT: a proxy that stands for the network between a node and the engine, and fails as networks do.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often a connection without traffic looks whether the mode has changed.
const LOOK: Duration = Duration::from_millis(10);

/// What the proxy does with what it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It hands it on.
    #[default]
    Forward,
    /// It takes it and says nothing, in both directions, as a cable that is cut. A connection that has lost something this way stays
    /// silent until it is closed.
    Swallow,
    /// The same for the answers alone: what is asked for is done, and nobody hears of it.
    SwallowAnswers,
    /// It closes all connections, and each new one at once.
    Cut,
    /// It hands on everything so much later.
    Delay(Duration),
    /// It hands on nothing and gives this answer to everything.
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
    /// Where it hands on to.
    to: SocketAddr,
    mode: Mutex<Mode>,
    ended: AtomicBool,
}

impl Proxy {
    /// Begins to hand on to this address.
    pub fn start(to: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { to, mode: Mutex::default(), ended: AtomicBool::new(false) });
        let accepting = Arc::clone(&shared);
        thread::Builder::new().name("proxy".into()).spawn(move || accept(&listener, &accepting))?;
        Ok(Self { address, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a client of Redis wants it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// What it does from now on, with the connections that are open too.
    pub fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // So that the thread that accepts looks.
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
        // One that can't be served is closed, which its client notices.
        if let Ok(client) = client
            && shared.mode() != Mode::Cut
        {
            _ = serve(client, shared);
        }
    }
}

/// One thread for each direction.
fn serve(client: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    let engine = TcpStream::connect(shared.to)?;
    let silent = Arc::new(AtomicBool::new(false));
    for (from, to, is_answer) in [(&client, &engine, false), (&engine, &client, true)] {
        from.set_read_timeout(Some(LOOK))?;
        from.set_nodelay(true)?;
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        let (shared, silent) = (Arc::clone(shared), Arc::clone(&silent));
        let spawned = thread::Builder::new().name("proxy".into()).spawn(move || {
            // Either way the connection ends.
            _ = carry(&from, &to, is_answer, &shared, &silent);
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
    silent: &AtomicBool,
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
        if silent.load(Ordering::Relaxed) {
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
