//! A proxy between a node and the engine that can be led to another server.
//!
//! It knows where a question and an answer end, as proxies for Redis do. So it can hide that the server behind it is
//! another one: open connections go on, and a question without an answer is asked again.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(5);

/// The server, and a number: connections of an earlier number are closed.
type Way = Mutex<(SocketAddr, usize)>;

pub(crate) struct Link {
    address: SocketAddr,
    way: Arc<Way>,
}

impl Link {
    pub(crate) fn to(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let way = Arc::new(Mutex::new((to, 0)));
        let link = Self { address, way: Arc::clone(&way) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let way = Arc::clone(&way);
                thread::spawn(move || serve(&client, &way));
            }
        });
        link
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Leads to another server. If it is not hidden, all connections are closed.
    pub(crate) fn lead_to(&self, to: SocketAddr, is_hidden: bool) {
        let mut way = self.way.lock().unwrap();
        *way = (to, way.1 + usize::from(!is_hidden));
    }
}

fn serve(client: &TcpStream, way: &Way) -> io::Result<()> {
    let (_, begin) = *way.lock().unwrap();
    let mut questions = BufReader::new(client);
    let mut server: Option<(SocketAddr, BufReader<TcpStream>)> = None;
    loop {
        let mut question = Vec::new();
        frame(&mut questions, &mut question)?;
        let answer = loop {
            let (to, number) = *way.lock().unwrap();
            if number != begin {
                return Ok(());
            }
            if server.as_ref().is_none_or(|(address, _)| *address != to) {
                server = TcpStream::connect(to).ok().map(|stream| (to, BufReader::new(stream)));
            }
            match server.as_mut().map(|(_, stream)| ask(stream, &question, to, way)) {
                Some(Ok(answer)) => break answer,
                _ => server = None,
            }
            thread::sleep(LOOK);
        };
        (&mut &*client).write_all(&answer)?;
    }
}

/// Asks a server. Fails if the way has changed meanwhile.
fn ask(stream: &mut BufReader<TcpStream>, question: &[u8], to: SocketAddr, way: &Way) -> io::Result<Vec<u8>> {
    stream.get_ref().write_all(question)?;
    stream.get_ref().set_read_timeout(Some(LOOK))?;
    let has_changed = || way.lock().unwrap().0 != to;
    while let Err(error) = stream.fill_buf() {
        if error.kind() != ErrorKind::WouldBlock || has_changed() {
            return Err(error);
        }
    }
    stream.get_ref().set_read_timeout(None)?;
    let mut answer = Vec::new();
    frame(stream, &mut answer)?;
    if has_changed() { Err(ErrorKind::Interrupted.into()) } else { Ok(answer) }
}

/// Reads one question or answer, with all its parts.
fn frame(from: &mut impl BufRead, into: &mut Vec<u8>) -> io::Result<()> {
    let start = into.len();
    from.read_until(b'\n', into)?;
    let [kind, number @ .., b'\r', b'\n'] = &into[start..] else { return Err(ErrorKind::UnexpectedEof.into()) };
    let number = str::from_utf8(number).ok().and_then(|number| number.parse().ok()).unwrap_or(0_i64);
    let parts = match kind {
        b'$' if number >= 0 => return from.take(number as u64 + 2).read_to_end(into).map(drop),
        b'*' | b'~' | b'>' => number,
        b'%' => 2 * number,
        _ => 0,
    };
    (0..parts).try_for_each(|_| frame(from, into))
}
