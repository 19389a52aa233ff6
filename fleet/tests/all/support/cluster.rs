//! A cluster of etcd, in a folder of its own. Each member has an address of the loopback interface to itself. Clients and
//! members reach it through a proxy. All processes end with the cluster, or with this process.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value, json};
use tempfile::TempDir;
use ureq::Agent;

use super::proxy::{Mode, Proxy};
use super::{has_etcd, longest, wait};

/// A process that ends when this is dropped.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

pub(crate) struct Member {
    name: String,
    folder: PathBuf,
    pub(crate) address: Ipv4Addr,
    /// The ways to its ports.
    pub(crate) clients: Proxy,
    from_peers: Proxy,
    process: Option<Process>,
}

pub(crate) struct Cluster {
    pub(crate) members: Vec<Member>,
    folder: TempDir,
    options: Vec<String>,
    agent: Agent,
}

/// Of a member, and of the proxies in front of it.
const CLIENTS: u16 = 17_379;
const PEERS: u16 = 17_380;
const PROXY_OF_CLIENTS: u16 = 17_381;
const PROXY_OF_PEERS: u16 = 17_382;

/// An address of this machine that belongs to whoever has the listener. (A port that is only free at the moment may belong to
/// another test when a member starts, or starts again. Then that test's member answers in its place.)
fn own_address() -> (Ipv4Addr, TcpListener) {
    // From 127.1.0.0 on.
    let any = || Ipv4Addr::from_bits(0x7f00_0000 + fastrand::u32(1 << 16..(1 << 24) - 1));
    let claim = |address| TcpListener::bind((address, PROXY_OF_CLIENTS)).ok().map(|listener| (address, listener));
    (0..100).find_map(|_| claim(any())).expect("an address of which this port is free")
}

fn etcdctl(endpoints: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("etcdctl");
    // By itself it gives up after 5 seconds.
    let limit = format!("{}s", longest().as_secs());
    command.env("ETCDCTL_API", "3").args(["--endpoints", endpoints, "--command-timeout", &limit]).args(arguments);
    command
}

/// What the program prints, if it succeeds.
fn run(command: &mut Command) -> String {
    let said = command.output().unwrap();
    assert!(said.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).into_owned()
}

impl Cluster {
    /// Starts this many members, unless there is no etcd to test with.
    pub(crate) fn start(members: usize, options: &[&str]) -> Option<Self> {
        if !has_etcd() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let member = |nth| {
            let (name, (address, listener)) = (format!("m{nth}"), own_address());
            let clients = Proxy::start(listener, (address, CLIENTS).into());
            let listener = TcpListener::bind((address, PROXY_OF_PEERS)).unwrap();
            let from_peers = Proxy::start(listener, (address, PEERS).into());
            let folder = folder.path().join(&name);
            Member { name, folder, address, clients, from_peers, process: None }
        };
        let members = (0..members).map(member).collect();
        let options = options.iter().map(ToString::to_string).collect();
        let agent = Agent::config_builder().timeout_global(Some(Duration::from_secs(5))).build().into();
        let mut cluster = Self { members, folder, options, agent };
        cluster.launch_all();
        Some(cluster)
    }

    /// What each member gets as `--initial-cluster`.
    pub(crate) fn list(&self) -> String {
        self.members.iter().map(Member::in_list).collect::<Vec<_>>().join(",")
    }

    /// Starts a member, with these options of etcd. Of two with one name, etcd takes the last.
    pub(crate) fn launch(&mut self, nth: usize, more: &[&str]) {
        let (list, member) = (self.list(), &mut self.members[nth]);
        let (client, peer) = (member.endpoint(), format!("http://{}:{PEERS}", member.address));
        let log = File::create(member.folder.with_extension("log")).unwrap();
        // It ends with this process, also if that is killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "etcd", "--name", &member.name, "--data-dir"]).arg(&member.folder);
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &member.peer_url()]);
        command.args(["--initial-cluster", &list, "--logger", "zap"]).args(&self.options).args(more);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        member.process = Some(Process(command.spawn().unwrap()));
    }

    /// Starts all members, and waits until they have a leader.
    pub(crate) fn launch_all(&mut self) {
        (0..self.members.len()).for_each(|nth| self.launch(nth, &[]));
        (0..self.members.len()).for_each(|nth| self.wait_until_healthy(nth));
    }

    fn get(&self, member: &Member, path: &str) -> Option<Value> {
        let answer = self.agent.get(format!("{}/{path}", member.endpoint())).call();
        serde_json::from_reader(answer.ok()?.body_mut().as_reader()).ok()
    }

    /// The addresses of all members, the nth first, as a node gets them.
    pub(crate) fn urls(&self, first: usize) -> String {
        let members = (0..self.members.len()).map(|nth| self.url((first + nth) % self.members.len()));
        members.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn url(&self, nth: usize) -> String {
        format!("http://{}", self.members[nth].clients.address)
    }

    /// As the SIGKILL of a crash.
    pub(crate) fn kill(&mut self, nth: usize) {
        self.members[nth].process = None;
    }

    /// Starts a member again, in its folder.
    pub(crate) fn restart(&mut self, nth: usize) {
        self.restart_with(nth, &[]);
    }

    /// The same, with these options of etcd.
    pub(crate) fn restart_with(&mut self, nth: usize, options: &[&str]) {
        self.kill(nth);
        self.launch(nth, options);
        wait("the member", || self.get(&self.members[nth], "version").map(drop));
    }

    /// Starts a member that ends by itself. Returns what it says.
    pub(crate) fn start_in_vain(&mut self, nth: usize, options: &[&str]) -> String {
        self.launch(nth, options);
        let process = self.members[nth].process.as_mut().unwrap();
        wait("its end", || process.0.try_wait().unwrap());
        self.kill(nth);
        fs::read_to_string(self.members[nth].folder.with_extension("log")).unwrap()
    }

    /// Ends a member, and removes its data.
    pub(crate) fn wipe(&mut self, nth: usize) {
        self.kill(nth);
        fs::remove_dir_all(&self.members[nth].folder).unwrap();
    }

    /// Wipes a member, which starts as a cluster of its own.
    pub(crate) fn secede(&mut self, nth: usize) {
        self.wipe(nth);
        let alone = self.members[nth].in_list();
        self.restart_with(nth, &["--initial-cluster", &alone]);
    }

    pub(crate) fn wait_until_healthy(&self, nth: usize) {
        let member = &self.members[nth];
        let health = || self.get(member, "health").is_some_and(|said| said["health"] == "true").then_some(());
        wait("the member to be healthy", health);
    }

    /// Stops a process, or lets it go on: as a machine that hangs.
    pub(crate) fn signal(&self, nth: usize, signal: Signal) {
        kill_process(self.members[nth].pid(), signal).unwrap();
    }

    fn status(&self, nth: usize) -> Option<Value> {
        self.post(nth, "maintenance/status", "{}")
    }

    fn post(&self, nth: usize, path: &str, question: &str) -> Option<Value> {
        let answer = self.agent.post(format!("{}/v3/{path}", self.endpoint(nth))).send(question);
        serde_json::from_reader(answer.ok()?.body_mut().as_reader()).ok()
    }

    /// Asks a majority for a key.
    pub(crate) fn question(&self) {
        self.post(0, "kv/range", r#"{"key":"YQ=="}"#).unwrap();
    }

    /// The member that leads.
    pub(crate) fn leader(&self) -> usize {
        let leads = |nth: &usize| {
            let said = self.members[*nth].process.as_ref().and_then(|_| self.status(*nth));
            said.is_some_and(|said| said["leader"].is_string() && said["leader"] == said["header"]["member_id"])
        };
        wait("a leader", || (0..self.members.len()).find(leads))
    }

    /// Cuts the member off from the others, or ends that. Clients still reach it.
    pub(crate) fn isolate(&self, nth: usize, is_isolated: bool) {
        let id = || self.status(nth)?["header"]["member_id"].as_str()?.parse::<u64>().ok();
        let id = format!("{:x}", wait("its identifier", id));
        for (other, member) in self.members.iter().enumerate() {
            member.from_peers.block(&id, is_isolated && other != nth);
        }
        self.members[nth].from_peers.set(if is_isolated { Mode::Cut } else { Mode::Forward });
    }

    /// The addresses of all members, not through a proxy.
    pub(crate) fn endpoints(&self) -> String {
        (0..self.members.len()).map(|nth| self.endpoint(nth)).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn endpoint(&self, nth: usize) -> String {
        self.members[nth].endpoint()
    }

    pub(crate) fn name_and_peer_url(&self, nth: usize) -> (String, String) {
        (self.members[nth].name.clone(), self.members[nth].peer_url())
    }

    /// From its next start on, the member has its data in this folder, which is not there yet.
    pub(crate) fn new_folder(&mut self, nth: usize) -> String {
        let member = &mut self.members[nth];
        member.folder.set_extension("new");
        member.folder.to_str().unwrap().to_owned()
    }

    /// Writes until etcd has no space left.
    pub(crate) fn fill(&self) {
        let large = "x".repeat(100_000);
        wait("no space", || {
            let said = etcdctl(&self.endpoints(), &["put", "junk", &large]).output().unwrap();
            String::from_utf8_lossy(&said.stderr).contains("space exceeded").then_some(())
        });
    }

    /// `etcdctl` against all members that run.
    fn etcdctl(&self, arguments: &[&str]) -> Command {
        let running = self.members.iter().filter(|member| member.process.is_some());
        let endpoints: Vec<_> = running.map(Member::endpoint).collect();
        etcdctl(&endpoints.join(","), arguments)
    }

    /// Runs `etcdctl` against all members that run, and returns what it prints.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> String {
        run(&mut self.etcdctl(arguments))
    }

    /// Compacts all that etcd has. It may have no leader, and then does not.
    pub(crate) fn try_to_compact(&self) {
        let revision = self.revision().to_string();
        let _ = self.etcdctl(&["compact", &revision]).output().unwrap();
    }

    pub(crate) fn members_known_to(&self, nth: usize) -> String {
        run(&mut etcdctl(&self.endpoint(nth), &["member", "list"]))
    }

    /// The record of this key, which [`write_back`](Self::write_back) writes again.
    pub(crate) fn record(&self, key: &str) -> Value {
        let said: Value = serde_json::from_str(&self.ctl(&["get", key, "-w", "json"])).unwrap();
        json!({ "key": said["kvs"][0]["key"], "value": said["kvs"][0]["value"] })
    }

    pub(crate) fn write_back(&self, record: &Value) {
        self.post(0, "kv/put", &record.to_string()).unwrap();
    }

    /// The revision of the cluster.
    pub(crate) fn revision(&self) -> i64 {
        wait("a revision", || self.status(self.leader())?["header"]["revision"].as_str()?.parse().ok())
    }

    /// Writes a backup.
    pub(crate) fn save(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let member = self.members.iter().find(|member| member.process.is_some()).unwrap();
        // A member may lag, and its backup with it. It answers a question when it has all changes.
        run(&mut etcdctl(&member.endpoint(), &["get", "revoked/epoch"]));
        run(etcdctl(&member.endpoint(), &["snapshot", "save"]).arg(&path));
        path
    }

    /// Replaces the whole cluster by a backup, which keeps its identifier unless these options give it another token.
    pub(crate) fn restore_with(&mut self, backup: &Path, more: &[&str]) {
        (0..self.members.len()).for_each(|nth| self.wipe(nth));
        let list = self.list();
        for member in &self.members {
            let peer_url = member.peer_url();
            let options =
                ["--name", &member.name, "--initial-cluster", &list, "--initial-advertise-peer-urls", &peer_url];
            let mut restore = etcdctl("", &["snapshot", "restore"]);
            run(restore.arg(backup).args(options).args(more).arg("--data-dir").arg(&member.folder));
        }
        self.launch_all();
    }
}

impl Member {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.process.as_ref().unwrap().0)
    }

    /// Where it listens for clients.
    fn endpoint(&self) -> String {
        format!("http://{}:{CLIENTS}", self.address)
    }

    /// The way to it that it tells other members.
    fn peer_url(&self) -> String {
        format!("http://{}", self.from_peers.address)
    }

    /// As `--initial-cluster` names it.
    fn in_list(&self) -> String {
        format!("{}={}", self.name, self.peer_url())
    }

    /// From now on it can't write to its disk.
    pub(crate) fn fill_disk(&self) {
        prlimit(Some(self.pid()), Resource::Fsize, Rlimit { current: Some(1), maximum: Some(1) }).unwrap();
    }
}
