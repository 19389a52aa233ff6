//! A fleet of three nodes on this machine: what it does when a token is revoked, a node is killed, the engine is cut
//! off, and a node is led to a replica that lags.
//!
//! The nodes are processes of this program. The output comes from their `/healthz` and their answers.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fleet::testing::proxy::{Mode, Proxy};
use fleet::testing::server::Server;
use serde_json::Value;
use ureq::Agent;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// How long each step of the demo may take.
const LONGEST: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = Server::start(&folder.path().join("engine")).map_err(|error| error.to_string())?;
    let mut demo = Demo::start(&server, folder.path())?;
    demo.tell("Three nodes, and a redis-server of their own, which acknowledges what is on disk.");
    demo.table()?;

    demo.tell("alice's token is revoked on node a. Her next request goes to each of them.");
    let position = demo.revoke("a", "alice")?;
    demo.tell(&format!(
        "Node a has acknowledged it: the log has it as message {position}, on disk, and so has its own filter."
    ));
    demo.follow(position)?;
    demo.ask("alice")?;
    demo.ask("bob")?;

    demo.tell("Node b is killed (kill -9). Meanwhile carol's token is revoked on node c.");
    demo.kill("b");
    let position = demo.revoke("c", "carol")?;
    demo.tell("Node b is started again: it joins from a snapshot or the log, and then knows what the others know.");
    demo.spawn("b")?;
    demo.follow(position)?;
    demo.ask("carol")?;
    demo.table()?;

    demo.tell("The engine is cut off: nothing that is sent to it comes back, and no connection is closed.");
    demo.proxy.set(Mode::Swallow);
    demo.wait(NAMES, "stale")?;
    demo.table()?;
    demo.tell("No node can know of tokens that are revoked from now on, so no node says \"not revoked\":");
    demo.ask("alice")?;
    demo.ask("bob")?;

    demo.tell("The engine is back. No operator has to act.");
    demo.proxy.set(Mode::Forward);
    demo.wait(NAMES, "ready")?;
    demo.ask("alice")?;
    demo.ask("bob")?;
    demo.alike()?;
    demo.table()?;

    demo.tell(
        "Node b's connection leads to a replica now, which is cut off from its master. dave's token is revoked on a.",
    );
    let port = server.address().port().to_string();
    let replica = Server::start_with(&folder.path().join("replica"), &["--replicaof", "127.0.0.1", &port])
        .map_err(|error| error.to_string())?;
    demo.until("the replica to have a copy", || {
        Ok(replica.info("replication").is_ok_and(|info| info.contains("master_link_status:up")))
    })?;
    demo.to_b.lead_to(replica.address());
    replica.say("REPLICAOF 127.0.0.1 1").map_err(|error| error.to_string())?;
    demo.revoke("a", "dave")?;
    demo.wait(["b"], "stale")?;
    demo.tell("The replica would say that dave is fine. But only a master's word counts, so node b can't tell:");
    demo.ask("dave")?;
    demo.table()?;
    demo.to_b.lead_to(demo.proxy.address());
    demo.wait(NAMES, "ready")?;
    demo.ask("dave")?;

    demo.tell("What each node knew, and when it knew it (seconds since the beginning):");
    demo.histories()
}

struct Demo {
    nodes: BTreeMap<&'static str, (Child, String)>,
    proxy: Proxy,
    /// The way of node b, through the other proxy.
    to_b: Proxy,
    key: String,
    agent: Agent,
    begin: SystemTime,
}

impl Demo {
    fn start(server: &Server, folder: &Path) -> Result<Self, String> {
        let proxy = Proxy::start(server.address()).map_err(|error| error.to_string())?;
        let timeout = Some(Duration::from_secs(15));
        let agent = Agent::config_builder().http_status_as_error(false).timeout_global(timeout).build().into();
        let key = folder.join("fleet.key").display().to_string();
        let to_b = Proxy::start(proxy.address()).map_err(|error| error.to_string())?;
        let mut demo = Self { nodes: BTreeMap::new(), proxy, to_b, key, agent, begin: SystemTime::now() };
        for name in NAMES {
            demo.spawn(name)?;
        }
        demo.wait(NAMES, "ready")?;
        Ok(demo)
    }

    fn spawn(&mut self, name: &'static str) -> Result<(), String> {
        let program = env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["node", "--listen", "127.0.0.1:0", "--node", name, "--resolution", "1", "--snapshot-every", "2"]);
        command.args(["--longest-lifetime", "3600", "--capacity", "100_000", "--key-file", &self.key]);
        let proxy = if name == "b" { &self.to_b } else { &self.proxy };
        command.args(["--engine", &proxy.url()]);
        for variable in ["FLEET_ADMIN_TOKEN", "FLEET_ENGINE_URL", "FLEET_KEY"] {
            command.env_remove(variable);
        }
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(|error| error.to_string())?;
        let mut line = String::new();
        let output = child.stdout.take().ok_or("the node has no output")?;
        BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        let address = line.trim().strip_prefix("listening on ").ok_or("the node does not start")?.to_owned();
        self.nodes.insert(name, (child, address));
        Ok(())
    }

    fn kill(&mut self, name: &str) {
        if let Some((mut child, _)) = self.nodes.remove(name) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn seconds(&self) -> f64 {
        self.begin.elapsed().unwrap_or_default().as_secs_f64()
    }

    fn tell(&self, what: &str) {
        println!("\n{:6.2} s  {what}", self.seconds());
    }

    fn request(&self, method: &str, node: &str, path: &str, bearer: Option<&str>) -> Result<(u16, Value), String> {
        let (_, address) = self.nodes.get(node).ok_or("there is no such node")?;
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{address}{path}"));
        if let Some(token) = bearer {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body("").map_err(|error| error.to_string())?;
        let mut response = self.agent.run(request).map_err(|error| format!("node {node} does not answer: {error}"))?;
        let status = response.status().as_u16();
        let body = response.body_mut().read_to_string().map_err(|error| error.to_string())?;
        Ok((status, serde_json::from_str(&body).unwrap_or_default()))
    }

    fn health(&self, node: &str) -> Result<Value, String> {
        Ok(self.request("GET", node, "/healthz", None)?.1)
    }

    fn revoke(&self, node: &str, token: &str) -> Result<u64, String> {
        let exp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() + 600;
        let begin = Instant::now();
        let (status, body) = self.request("PUT", node, &format!("/revoked/{token}?exp={exp}"), None)?;
        println!("          PUT /revoked/{token} on {node}: {status} {body} after {:.1} ms", ms(begin.elapsed()));
        body["position"].as_u64().ok_or_else(|| format!("{token} was not revoked: {body}"))
    }

    /// Waits until each node has applied this message.
    fn follow(&self, position: u64) -> Result<(), String> {
        self.until(&format!("all nodes to have message {position}"), || {
            let all = self.nodes.keys().map(|node| Ok(self.health(node)?["position"].as_u64() >= Some(position)));
            Ok(all.collect::<Result<Vec<_>, String>>()?.into_iter().all(|has| has))
        })?;
        self.wait(self.nodes.keys().copied(), "ready")
    }

    fn wait(&self, nodes: impl IntoIterator<Item = &'static str>, state: &str) -> Result<(), String> {
        for node in nodes {
            self.until(&format!("node {node} to be {state}"), || Ok(self.health(node)?["state"] == state))?;
        }
        Ok(())
    }

    /// Waits until all nodes report the same digest of the same position.
    fn alike(&self) -> Result<(), String> {
        self.until("all nodes to have the same digest", || {
            let digests = self.nodes.keys().map(|node| Ok(self.health(node)?["digest"].clone()));
            let digests = digests.collect::<Result<Vec<_>, String>>()?;
            Ok(digests[0].is_object() && digests.iter().all(|digest| *digest == digests[0]))
        })
    }

    fn until(&self, what: &str, is_so: impl Fn() -> Result<bool, String>) -> Result<(), String> {
        let begin = Instant::now();
        while !is_so()? {
            if begin.elapsed() > LONGEST {
                return Err(format!("waited {LONGEST:?} for {what}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Sends a request with this token to each node.
    fn ask(&self, token: &str) -> Result<(), String> {
        let mut answers = Vec::new();
        for node in self.nodes.keys() {
            let status = self.request("GET", node, "/protected", Some(token))?.0;
            let meaning = match status {
                200 => "passes",
                401 => "refused",
                503 => "can't tell",
                _ => "?",
            };
            answers.push(format!("{node}: {status} {meaning}"));
        }
        println!("          GET /protected as {token:<6} {}", answers.join("   "));
        Ok(())
    }

    fn table(&self) -> Result<(), String> {
        println!("          node state    position  head  lag, s  digest (at)              why");
        for node in self.nodes.keys() {
            let health = self.health(node)?;
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            let number = |value: &Value| value.as_u64().map_or("-".into(), |number| number.to_string());
            let digest = &health["digest"];
            println!(
                "          {node:<4} {:<8} {:>8} {:>5} {:>7} {:>16} ({:>3})    {}",
                text(&health["state"]),
                number(&health["position"]),
                number(&health["head"]),
                health["lag"]["seconds"].as_f64().map_or("-".into(), |lag| format!("{lag:.2}")),
                text(&digest["value"]),
                number(&digest["position"]),
                text(&health["why"]),
            );
        }
        Ok(())
    }

    fn histories(&self) -> Result<(), String> {
        let begin = self.begin.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        for node in self.nodes.keys() {
            for past in self.health(node)?["history"].as_array().into_iter().flatten() {
                let since = past["since"].as_f64().map_or(0.0, |since| since - begin);
                let text = |name: &str| past[name].as_str().unwrap_or("-").to_owned();
                println!("          {node}  {since:6.2}  {:<8} {}", text("state"), text("why"));
            }
        }
        Ok(())
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

impl Drop for Demo {
    fn drop(&mut self) {
        for name in NAMES {
            self.kill(name);
        }
    }
}
