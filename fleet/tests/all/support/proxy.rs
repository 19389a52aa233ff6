//! The network between two programs, which fails as networks do.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};
use std::{io, thread};

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

struct Shared {
    to: SocketAddr,
    mode: Mutex<Mode>,
    /// Members of etcd whose requests are cut off, by the identifier that they send.
    blocked: Mutex<HashSet<String>>,
    /// Both ends of all connections, while they last.
    streams: Mutex<Vec<Weak<TcpStream>>>,
}

/// A port that leads to another one, as long as this process lives.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    pub(crate) fn start(listener: TcpListener, to: SocketAddr) -> Self {
        let address = listener.local_addr().unwrap();
        let (mode, blocked, streams) = Default::default();
        let shared = Arc::new(Shared { to, mode, blocked, streams });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                // What can't be served is closed.
                _ = client.and_then(|client| serve(client, &accepting));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
        if mode == Mode::Cut {
            let streams = std::mem::take(&mut *self.shared.streams.lock().unwrap());
            streams.iter().filter_map(Weak::upgrade).for_each(|stream| close(&stream));
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
        } else {
            blocked.remove(member);
        }
    }
}

fn close(stream: &TcpStream) {
    // It may be closed already.
    _ = stream.shutdown(Shutdown::Both);
}

fn serve(client: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    if *shared.mode.lock().unwrap() == Mode::Cut {
        return Ok(());
    }
    let (client, server) = (Arc::new(client), Arc::new(TcpStream::connect(shared.to)?));
    let sender = Arc::new(OnceLock::new());
    {
        let mut streams = shared.streams.lock().unwrap();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.extend([&client, &server].map(Arc::downgrade));
    }
    for (from, to, is_answer) in [(&client, &server, false), (&server, &client, true)] {
        from.set_nodelay(true)?;
        let (from, to) = (Arc::clone(from), Arc::clone(to));
        let (shared, sender) = (Arc::clone(shared), Arc::clone(&sender));
        thread::spawn(move || {
            // Either way it ends.
            _ = carry(&from, &to, is_answer, &shared, &sender);
            close(&from);
            close(&to);
        });
    }
    Ok(())
}

fn carry(
    from: &TcpStream,
    to: &TcpStream,
    is_answer: bool,
    shared: &Shared,
    sender: &OnceLock<String>,
) -> io::Result<()> {
    // What is late keeps its distances: so a request that is given up comes before the word that it was.
    let (sent, arriving) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            if deliver(to, arriving).is_err() {
                _ = from.shutdown(Shutdown::Both);
            }
        });
        receive(from, sent, is_answer, shared, sender)
    })
}

/// Sends each of these bytes when it is due.
fn deliver(mut to: &TcpStream, arriving: mpsc::Receiver<(Instant, Vec<u8>)>) -> io::Result<()> {
    for (due, bytes) in arriving {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        to.write_all(&bytes)?;
    }
    Ok(())
}

fn receive(
    mut from: &TcpStream,
    sent: mpsc::Sender<(Instant, Vec<u8>)>,
    is_answer: bool,
    shared: &Shared,
    sender: &OnceLock<String>,
) -> io::Result<()> {
    let (mut buffer, mut is_silent) = (vec![0; 1 << 16], false);
    loop {
        let read = from.read(&mut buffer)?;
        let (bytes, mode) = (&buffer[..read], *shared.mode.lock().unwrap());
        if !is_answer {
            sender.get_or_init(|| member_of(bytes));
        }
        let is_blocked = sender.get().is_some_and(|sender| shared.blocked.lock().unwrap().contains(sender));
        if read == 0 || mode == Mode::Cut || is_blocked {
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
            if sent.send((Instant::now() + late, bytes.to_vec())).is_err() {
                return Ok(());
            }
        }
    }
}

/// The member of etcd that sends this request.
fn member_of(request: &[u8]) -> String {
    let head = String::from_utf8_lossy(request);
    head.lines().find_map(|line| line.strip_prefix("X-Server-From: ")).unwrap_or_default().trim().to_owned()
}
