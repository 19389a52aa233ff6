//! A cluster of etcd, in a folder of its own, on free ports of the loopback interface. Clients and members reach each
//! member through a proxy. All processes end with the cluster, or with this process.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{io, thread};

use serde_json::Value;
use tempfile::TempDir;

use super::proxy::{Mode, Proxy};
use super::wait;

/// A process that ends when this is dropped, and also if this process is killed.
struct Process {
    child: Child,
    watchdog: Child,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        let child = command.spawn().unwrap();
        // Its input ends with this process.
        let script = format!("read line; kill -9 {} 2>/dev/null", child.id());
        let watchdog = Command::new("sh").args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        Self { child, watchdog }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        for child in [&mut self.watchdog, &mut self.child] {
            // It may have ended.
            _ = child.kill();
            _ = child.wait();
        }
    }
}

pub struct Member {
    name: String,
    folder: PathBuf,
    /// Where it listens for clients and for members.
    address: SocketAddr,
    peers: SocketAddr,
    /// The ways to these ports.
    pub clients: Proxy,
    from_peers: Proxy,
    process: Option<Process>,
    pub options: Vec<String>,
}

pub struct Cluster {
    pub members: Vec<Member>,
    pub folder: TempDir,
}

fn free_port() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

/// An answer over HTTP.
fn http(address: SocketAddr, request: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (head, body) = request.split_once('\n').unwrap_or((request, ""));
    let len = body.len();
    write!(stream, "{head} HTTP/1.0\r\nhost: etcd\r\ncontent-length: {len}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}

impl Cluster {
    /// Starts this many members.
    pub fn start(members: usize, options: &[&str]) -> Self {
        loop {
            let mut cluster = Self { members: Vec::new(), folder: tempfile::tempdir().unwrap() };
            for nth in 0..members {
                let (address, peers) = (free_port(), free_port());
                let name = format!("m{nth}");
                cluster.members.push(Member {
                    folder: cluster.folder.path().join(&name),
                    name,
                    address,
                    peers,
                    clients: Proxy::start(address),
                    from_peers: Proxy::start(peers),
                    process: None,
                    options: options.iter().map(ToString::to_string).collect(),
                });
            }
            (0..members).for_each(|nth| cluster.launch(nth));
            // Another process may have taken a port.
            if wait(
                "a cluster",
                || if cluster.has_ended() { Some(false) } else { cluster.is_healthy().then_some(true) },
            ) {
                return cluster;
            }
        }
    }

    fn list(&self) -> String {
        let of = |member: &Member| format!("{}=http://{}", member.name, member.from_peers.address);
        self.members.iter().map(of).collect::<Vec<_>>().join(",")
    }

    fn launch(&mut self, nth: usize) {
        let list = self.list();
        let member = &mut self.members[nth];
        member.process = None;
        let (client, peer) = (format!("http://{}", member.address), format!("http://{}", member.peers));
        let log = File::create(member.folder.with_extension("log")).unwrap();
        let mut command = Command::new("etcd");
        command.args(["--name", &member.name, "--data-dir"]).arg(&member.folder);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls"]);
        command.arg(format!("http://{}", member.from_peers.address));
        command.args(["--initial-cluster", &list, "--logger", "zap"]).args(&member.options);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        member.process = Some(Process::start(&mut command));
    }

    fn has_ended(&mut self) -> bool {
        self.members.iter_mut().any(|member| !member.is_alive())
    }

    fn is_healthy(&self) -> bool {
        let of = |member: &Member| http(member.address, "GET /health").is_ok_and(|said| said.contains("\"true\""));
        self.members.iter().all(of)
    }

    /// Waits until all members that run have a leader.
    pub fn wait(&self) {
        wait("a healthy cluster", || self.is_healthy().then_some(()));
    }

    /// The addresses of all members, the nth first, as a node gets them.
    pub fn urls(&self, first: usize) -> String {
        let members = (0..self.members.len()).map(|nth| self.url((first + nth) % self.members.len()));
        members.collect::<Vec<_>>().join(",")
    }

    pub fn url(&self, nth: usize) -> String {
        format!("http://{}", self.members[nth].clients.address)
    }

    /// As the SIGKILL of a crash.
    pub fn kill(&mut self, nth: usize) {
        self.members[nth].process = None;
    }

    /// Starts a member again, in its folder.
    pub fn restart(&mut self, nth: usize) {
        // Its ports were free a moment ago; another process may hold one for a moment.
        loop {
            self.launch(nth);
            let is_up = wait("the member", || {
                let member = &mut self.members[nth];
                if !member.is_alive() {
                    Some(false)
                } else {
                    http(member.address, "GET /version").is_ok().then_some(true)
                }
            });
            if is_up {
                return;
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Stops a process, or lets it go on: as a machine that hangs.
    pub fn pause(&self, nth: usize, is_paused: bool) {
        let signal = if is_paused { rustix::process::Signal::STOP } else { rustix::process::Signal::CONT };
        rustix::process::kill_process(self.members[nth].pid(), signal).unwrap();
    }

    fn status(&self, nth: usize) -> Option<Value> {
        let said = http(self.members[nth].address, "POST /v3/maintenance/status\n{}").ok()?;
        serde_json::from_str(&said).ok()
    }

    /// The member that leads.
    pub fn leader(&self) -> usize {
        wait("a leader", || {
            (0..self.members.len()).find(|nth| {
                self.members[*nth].process.is_some()
                    && self
                        .status(*nth)
                        .is_some_and(|said| said["leader"].is_string() && said["leader"] == said["header"]["member_id"])
            })
        })
    }

    /// Cuts the member off from the others, or ends that. Clients still reach it.
    pub fn isolate(&self, nth: usize, is_isolated: bool) {
        let id = wait("its identifier", || {
            let said = self.status(nth)?;
            said["header"]["member_id"].as_str()?.parse::<u64>().ok()
        });
        for (other, member) in self.members.iter().enumerate() {
            member.from_peers.block(&format!("{id:x}"), is_isolated && other != nth);
        }
        self.members[nth].from_peers.set(if is_isolated { Mode::Cut } else { Mode::Forward });
    }

    /// Runs `etcdctl` against all members that run, and returns what it prints.
    pub fn ctl(&self, arguments: &[&str]) -> String {
        let running = self.members.iter().filter(|member| member.process.is_some());
        let endpoints: Vec<_> = running.map(|member| format!("http://{}", member.address)).collect();
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").arg("--endpoints").arg(endpoints.join(",")).args(arguments);
        let said = command.output().unwrap();
        assert!(said.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    /// The revision of the cluster.
    pub fn revision(&self) -> i64 {
        wait("a revision", || self.status(self.leader())?["header"]["revision"].as_str()?.parse().ok())
    }

    /// Writes a backup.
    pub fn save(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let member = self.members.iter().find(|member| member.process.is_some()).unwrap();
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args([
            "--endpoints",
            &format!("http://{}", member.address),
            "snapshot",
            "save",
        ]);
        assert!(command.arg(&path).output().unwrap().status.success());
        path
    }

    /// Replaces the whole cluster by a backup, as an operator does.
    pub fn restore(&mut self, backup: &PathBuf) {
        (0..self.members.len()).for_each(|nth| self.kill(nth));
        let list = self.list();
        for member in &self.members {
            fs::remove_dir_all(&member.folder).unwrap();
            let mut command = Command::new("etcdctl");
            command.env("ETCDCTL_API", "3").args(["snapshot", "restore"]).arg(backup).args(["--name", &member.name]);
            command.args(["--initial-cluster", &list, "--initial-advertise-peer-urls"]);
            command.arg(format!("http://{}", member.from_peers.address)).arg("--data-dir").arg(&member.folder);
            assert!(command.output().unwrap().status.success());
        }
        (0..self.members.len()).for_each(|nth| self.launch(nth));
        self.wait();
    }
}

impl Member {
    fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.process.as_ref().unwrap().child)
    }

    pub fn is_alive(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.child.try_wait().unwrap().is_none())
    }

    /// From now on it can't write to its disk.
    pub fn fill_disk(&self) {
        use rustix::process::{Resource, Rlimit, prlimit};
        let limit = Rlimit { current: Some(1), maximum: Some(1) };
        prlimit(Some(self.pid()), Resource::Fsize, limit).unwrap();
    }
}
