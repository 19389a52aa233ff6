//! A separate server for each test, and clients of it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::NamedTempFile;
use ureq::Agent;

/// How long to wait at most, on the slowest machine.
const LONGEST: Duration = Duration::from_secs(120);

/// Asks until there is an answer.
#[track_caller]
pub(crate) fn wait_for<A: Answered>(what: &str, mut ask: impl FnMut() -> A) -> A::Answer {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().answer() {
            return answer;
        }
        assert!(start.elapsed() < LONGEST, "waited {LONGEST:?} for {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) trait Answered {
    type Answer;
    fn answer(self) -> Option<Self::Answer>;
}

impl Answered for bool {
    type Answer = ();
    fn answer(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Answered for Option<T> {
    type Answer = T;
    fn answer(self) -> Self {
        self
    }
}

/// A directory for the server's data, deleted when the test ends.
pub(crate) fn data() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The server's process. It is killed when this is dropped.
pub(crate) struct Server {
    child: Child,
    address: String,
    stderr: NamedTempFile,
}

impl Server {
    /// Starts a server with its data in this directory. Snapshots are made only at the end unless the arguments say
    /// otherwise.
    #[track_caller]
    pub(crate) fn start(data: &Path, arguments: &[&str]) -> Self {
        let mut server = Self::spawn(data, arguments);
        let mut line = String::new();
        BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            server.child.wait().unwrap();
            panic!("it does not start: {}", server.said());
        };
        server.address = address.to_owned();
        server
    }

    /// Starts a server that must fail. Returns its messages.
    #[track_caller]
    pub(crate) fn fails(data: &Path, arguments: &[&str]) -> String {
        let mut server = Self::spawn(data, arguments);
        let mut line = String::new();
        BufReader::new(server.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "", "it starts with {arguments:?}");
        let status = server.child.wait().unwrap();
        assert!(matches!(status.code(), Some(1 | 2)), "{status}");
        server.said()
    }

    fn spawn(data: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_web-server"));
        command.args(["--listen", "127.0.0.1:0", "--snapshot-every", "0", "--capacity", "50_000", "--ids", "10_000"]);
        command.arg("--data").arg(data).args(arguments);
        command.env_remove("WEB_SERVER_ADMIN_TOKEN").stdout(Stdio::piped());
        // A file, because a pipe would have to be read before the address is printed.
        let stderr = NamedTempFile::new().unwrap();
        let child = command.stderr(stderr.reopen().unwrap()).spawn().unwrap();
        Self { child, address: String::new(), stderr }
    }

    /// Its messages on standard error so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.stderr.path()).unwrap()
    }

    /// A client with connections of its own.
    pub(crate) fn client(&self) -> Client {
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(LONGEST)).build();
        Client { agent: config.into(), address: self.address.clone(), headers: Vec::new() }
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
    }

    /// Waits until the server has ended, which must succeed.
    #[track_caller]
    pub(crate) fn wait(mut self) {
        let status: ExitStatus = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said());
    }

    /// Ends the server. That must succeed.
    #[track_caller]
    pub(crate) fn end(self) {
        self.terminate();
        self.wait();
    }

    /// Sends SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("the server said:\n{}", self.said());
        }
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    agent: Agent,
    address: String,
    headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Client {
    pub(crate) fn with_header(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub(crate) fn with_token(&self, token: &str) -> Self {
        self.with_header("authorization", &format!("Bearer {token}"))
    }

    fn request(&self, method: &str, path: &str, body: &[u8]) -> Result<Answer, ureq::Error> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.address));
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut response = self.agent.run(request.body(body)?)?;
        let mut answer = Answer { status: response.status().as_u16(), body: String::new() };
        response.body_mut().as_reader().read_to_string(&mut answer.body)?;
        Ok(answer)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, b"").unwrap()
    }

    #[track_caller]
    pub(crate) fn put(&self, path: &str) -> Answer {
        self.request("PUT", path, b"").unwrap()
    }

    /// A PUT with a body.
    #[track_caller]
    pub(crate) fn put_body(&self, path: &str, body: &str) -> Answer {
        self.request("PUT", path, body.as_bytes()).unwrap()
    }

    #[track_caller]
    pub(crate) fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, b"").unwrap()
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.request("POST", path, body).unwrap()
    }

    /// `None` if the server is gone.
    pub(crate) fn try_put(&self, path: &str) -> Option<Answer> {
        self.request("PUT", path, b"").ok()
    }

    pub(crate) fn try_delete(&self, path: &str) -> Option<Answer> {
        self.request("DELETE", path, b"").ok()
    }

    /// The status of the answer to a request with this token and this identifier.
    #[track_caller]
    pub(crate) fn protected(&self, token: &str, id: Option<&str>) -> u16 {
        let mut client = self.with_token(token);
        if let Some(id) = id {
            client = client.with_header("x-request-id", id);
        }
        client.get("/protected").status
    }

    /// Loads in bulk. Returns the job when it has finished.
    #[track_caller]
    pub(crate) fn bulk(&self, lines: &str) -> Value {
        let answer = self.post("/revoked/bulk", lines.as_bytes());
        assert_eq!(answer.status, 202, "{answer:?}");
        let path = format!("/jobs/{}", answer.json()["job"]);
        wait_for("the job to finish", || {
            let job = self.get(&path).json();
            (job["finished"] == true).then_some(job)
        })
    }
}

/// A clock that a test sets, for a server that is started with its [`arguments`](Self::arguments).
pub(crate) struct Clock(NamedTempFile);

impl Clock {
    /// A clock that shows so many seconds since 1970.
    pub(crate) fn at(seconds: u64) -> Self {
        let clock = Self(NamedTempFile::new().unwrap());
        clock.set(seconds);
        clock
    }

    pub(crate) fn set(&self, seconds: u64) {
        self.0.as_file().set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }

    /// The arguments that make a server use this clock, and these others.
    pub(crate) fn arguments<'a>(&'a self, others: &[&'a str]) -> Vec<&'a str> {
        [&["--clock-file", self.0.path().to_str().unwrap()], others].concat()
    }
}
