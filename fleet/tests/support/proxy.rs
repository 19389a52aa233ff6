//! The network between two programs, which fails as networks do.

use std::collections::HashSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{io, thread};

/// How often a silent connection looks for a new mode.
const LOOK: Duration = Duration::from_millis(10);

/// What becomes of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
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
    is_over: AtomicBool,
}

/// A port that leads to another one.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    pub fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared =
            Arc::new(Shared { to, mode: Mutex::default(), blocked: Mutex::default(), is_over: AtomicBool::new(false) });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let mode = *accepting.mode.lock().unwrap();
                if let Ok(client) = client
                    && mode != Mode::Cut
                {
                    // What can't be served is closed.
                    _ = serve(&client, &accepting, mode);
                }
            }
        });
        Self { address, shared }
    }

    pub fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
    }

    pub fn block(&self, member: &str, is_blocked: bool) {
        let mut blocked = self.shared.blocked.lock().unwrap();
        if is_blocked {
            blocked.insert(member.to_owned())
        } else {
            blocked.remove(member)
        };
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        _ = TcpStream::connect(self.address);
    }
}

/// What the two directions of a connection share.
#[derive(Default)]
struct Connection {
    /// The member of etcd that has opened it.
    member: Mutex<Option<String>>,
    silent: [AtomicBool; 2],
}

fn serve(client: &TcpStream, shared: &Arc<Shared>, mode: Mode) -> io::Result<()> {
    let server = TcpStream::connect(shared.to)?;
    let connection = Arc::new(Connection::default());
    connection.silent[0].store(mode == Mode::Silent, Ordering::Relaxed);
    for (from, to, is_answer) in [(client, &server, false), (&server, client, true)] {
        from.set_read_timeout(Some(LOOK))?;
        from.set_nodelay(true)?;
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        let (shared, connection) = (Arc::clone(shared), Arc::clone(&connection));
        thread::spawn(move || {
            // Either way it ends.
            _ = carry(&from, &to, is_answer, &shared, &connection);
            _ = from.shutdown(Shutdown::Both);
            _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

fn carry(
    mut from: &TcpStream,
    mut to: &TcpStream,
    is_answer: bool,
    shared: &Shared,
    of: &Connection,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    while !shared.is_over.load(Ordering::Relaxed) {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(error) => return Err(error),
        };
        let mode = *shared.mode.lock().unwrap();
        let bytes = &buffer[..read];
        let member = &mut *of.member.lock().unwrap();
        if !is_answer && member.is_none() && read > 0 {
            let head = String::from_utf8_lossy(bytes);
            let header = head.lines().find_map(|line| line.strip_prefix("X-Server-From: "));
            *member = Some(header.unwrap_or_default().trim().to_owned());
        }
        if mode == Mode::Cut || member.as_ref().is_some_and(|member| shared.blocked.lock().unwrap().contains(member)) {
            return Ok(());
        }
        let silent = &of.silent[usize::from(is_answer)];
        if read == 0 || silent.load(Ordering::Relaxed) {
            continue;
        }
        match mode {
            Mode::Silent => silent.store(true, Ordering::Relaxed),
            Mode::SilentAnswers if is_answer => silent.store(true, Ordering::Relaxed),
            Mode::Late(time) => {
                thread::sleep(time);
                to.write_all(bytes)?;
            }
            Mode::Twice if is_answer => {
                to.write_all(bytes)?;
                to.write_all(bytes)?;
            }
            _ => to.write_all(bytes)?,
        }
    }
    Ok(())
}
