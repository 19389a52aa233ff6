//! An engine for one process: a `redis-server` that ends when this process drops it.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// The longest time to start, with a log to be read, also on a busy machine.
const START: Duration = Duration::from_secs(60);

/// Below the ports that systems give to clients, so that a port stays free while the server is down.
const PORTS: std::ops::Range<u16> = 20_000..30_000;

/// A `redis-server` on this machine, in a folder of its own. It is killed when this is dropped.
#[derive(Debug)]
pub struct Server {
    program: String,
    folder: PathBuf,
    port: u16,
    options: Vec<String>,
    child: Option<Child>,
}

/// Why there is no server.
#[derive(Debug)]
pub enum ServerError {
    /// It is not installed.
    Missing,
    /// It could not be started.
    Start(io::Error),
    /// It ended at once, or does not answer. Contains the end of its output.
    Silent(String),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(
                f,
                "there is no redis-server; install it with `apt-get install redis-server` or `brew install redis`, or \
                 run one with `docker run -p 6379:6379 redis:7 --appendonly yes --appendfsync always`"
            ),
            Self::Start(error) => write!(f, "redis-server can't be started: {error}"),
            Self::Silent(said) => write!(f, "redis-server does not answer; it said: {said}"),
        }
    }
}

impl std::error::Error for ServerError {}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        Self::Start(error)
    }
}

impl Server {
    /// Whether a server is installed: `redis-server` or `valkey-server`, or the program that the environment variable
    /// `FLEET_REDIS_SERVER` names.
    pub fn is_installed() -> bool {
        program().is_some()
    }

    /// Starts a server on a free port of the loopback interface, in this folder, which is made if it is missing.
    /// What the server acknowledges is on disk. The server answers when this returns.
    pub fn start(folder: &Path) -> Result<Self, ServerError> {
        Self::start_with(folder, &[])
    }

    /// The same with further options, such as `["--appendfsync", "no"]`.
    pub fn start_with(folder: &Path, options: &[&str]) -> Result<Self, ServerError> {
        let program = program().ok_or(ServerError::Missing)?;
        fs::create_dir_all(folder)?;
        let options = options.iter().map(ToString::to_string).collect();
        let mut server = Self { program, folder: folder.to_owned(), port: 0, options, child: None };
        // Another process may take the port before the server does.
        let mut attempts = 5;
        loop {
            server.port = free_port()?;
            attempts -= 1;
            match server.restart() {
                Err(ServerError::Silent(_)) if attempts > 0 && server.has_ended() => {}
                result => return result.map(|()| server),
            }
        }
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// The same, as a URL for a client.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Its process number, or `None` if it is down.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Kills it, as a crash would (SIGKILL).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            _ = child.kill();
            _ = child.wait();
        }
    }

    /// Starts it again, in the same folder and on the same port, and waits until it answers. If it still runs, it
    /// is killed first.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.restart_without_waiting()?;
        self.wait()
    }

    /// The same without waiting. While the server reads its log, it answers that it is loading.
    pub fn restart_without_waiting(&mut self) -> Result<(), ServerError> {
        self.kill();
        self.mend()?;
        let said = File::create(self.folder.join("said.txt"))?;
        let mut command = Command::new(&self.program);
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--dir"]).arg(&self.folder);
        command.args(["--appendonly", "yes", "--appendfsync", "always", "--aof-load-truncated", "no", "--save", ""]);
        command.args(&self.options);
        command.stdin(Stdio::null()).stderr(said.try_clone()?).stdout(said);
        // For tests: takes the place of the system's clock.
        let clock = self.folder.join("clock.so");
        if clock.exists() {
            command.env("LD_PRELOAD", clock);
        }
        self.child = Some(command.spawn()?);
        Ok(())
    }

    /// The end of its append-only file.
    pub fn log_file(&self) -> PathBuf {
        self.folder.join("appendonlydir/appendonly.aof.1.incr.aof")
    }

    /// Removes what a write that was not finished has left at the end of the log, as the RUNBOOK says.
    fn mend(&self) -> io::Result<()> {
        let manifest = self.folder.join("appendonlydir/appendonly.aof.manifest");
        if !manifest.exists() || self.options.iter().any(|option| option == "--aof-load-truncated") {
            return Ok(());
        }
        let mut command = Command::new(self.program.replace("-server", "-check-aof"));
        command.arg("--fix").arg(manifest).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        // It asks only if it has found something, and may have ended by now.
        _ = child.stdin.take().map(|mut stdin| stdin.write_all(b"y\n"));
        child.wait().map(drop)
    }

    /// Waits until it answers.
    pub fn wait(&mut self) -> Result<(), ServerError> {
        let deadline = Instant::now() + START;
        // An answer may come from another server on that port. In that case this one ends by itself.
        let ours = format!("process_id:{}\r\n", self.process().unwrap_or_default());
        while !self.has_ended() && Instant::now() < deadline {
            let is_loaded = self.say("PING").is_ok_and(|answer| answer == "+PONG" || answer.starts_with("-NOAUTH"));
            if is_loaded && self.info("server").is_ok_and(|said| said.contains(&ours) || said.starts_with("-NOAUTH")) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let said = fs::read_to_string(self.folder.join("said.txt")).unwrap_or_default();
        let lines: Vec<_> = said.lines().rev().take(3).collect();
        Err(ServerError::Silent(lines.into_iter().rev().collect::<Vec<_>>().join("; ")))
    }

    /// Sends a line, and returns the first line of the answer.
    pub fn say(&self, line: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        stream.write_all(format!("{line}\r\n").as_bytes())?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        Ok(answer.trim_end().to_owned())
    }

    /// What it says about itself, such as its `replication`.
    pub fn info(&self, section: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&self.address(), Duration::from_secs(1))?;
        stream.write_all(format!("INFO {section}\r\nQUIT\r\n").as_bytes())?;
        io::read_to_string(stream)
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> Option<String> {
    let runs = |program: &String| {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    match std::env::var("FLEET_REDIS_SERVER") {
        Ok(named) => Some(named).filter(runs),
        Err(_) => ["redis-server", "valkey-server"].map(String::from).into_iter().find(runs),
    }
}

/// A port on which no process listens.
fn free_port() -> io::Result<u16> {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    // Processes that run at the same time begin at different places.
    let start = std::process::id().wrapping_mul(7919) as u16;
    for _ in PORTS {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + start.wrapping_add(tried) % (PORTS.end - PORTS.start);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, "no port from 20000 to 29999 is free"))
}
