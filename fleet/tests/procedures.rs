//! Runs the blocks of `OPERATIONS.md` as they are written there, on a cluster of three members with three nodes.

mod node;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use node::{Node, now};
use serde_json::{Value, json};
use support::cluster::Cluster;
use support::wait;

/// The blocks of the page that have been run.
static RUN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// The blocks of the page that have a name.
fn blocks() -> impl Iterator<Item = (&'static str, String)> {
    include_str!("../OPERATIONS.md").split("```sh ").skip(1).map(|block| {
        let (name, rest) = block.split_once('\n').unwrap();
        (name, rest.split("```").next().unwrap().to_owned())
    })
}

/// What a block prints, with these variables.
fn run(name: &'static str, cluster: &Cluster, variables: &[(&str, &str)]) -> String {
    let said = try_to_run(name, cluster, variables);
    assert!(said.status.success(), "{name}: {said:?}");
    String::from_utf8(said.stdout).unwrap()
}

fn try_to_run(name: &'static str, cluster: &Cluster, variables: &[(&str, &str)]) -> Output {
    let (name, block) = blocks().find(|(of, _)| *of == name).unwrap();
    RUN.lock().unwrap().insert(name);
    let program = Path::new(env!("CARGO_BIN_EXE_fleet")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", &block]).stdin(Stdio::null());
    command.env("PATH", path).env("ETCDCTL_API", "3").env("FLEET", "revoked");
    command.env("ENDPOINTS", cluster.endpoints()).env("CLUSTER", cluster.list()).envs(variables.iter().copied());
    command.output().unwrap()
}

fn in_state(node: &Node, state: &str) -> Value {
    wait(state, || Some(node.get("/healthz").1).filter(|health| health["state"] == state))
}

fn three(cluster: &Cluster, options: &[&str]) -> [Node; 3] {
    [0, 1, 2].map(|nth| Node::start(&cluster.urls(nth), 1, options))
}

fn all_reject(nodes: &[Node], token: &str) {
    for node in nodes {
        node.wait_until_ready();
        wait("all to know", || (node.protected(token) == 401).then_some(()));
    }
}

/// One test, so that it can tell at the end that no block was left out.
#[test]
fn the_operators_page_says_what_works() {
    let Some(()) = restore_a_backup() else { return };
    replace_a_member();
    make_space();
    authenticate();
    change_settings();
    let run = RUN.lock().unwrap().clone();
    assert_eq!(run, blocks().map(|(name, _)| name).collect());
}

fn restore_a_backup() -> Option<()> {
    let mut cluster = Cluster::start(3, &[])?;
    let nodes = three(&cluster, &[]);
    assert_eq!(nodes[0].change("PUT", "early"), 201);
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup").to_str().unwrap().to_owned();
    run("backup", &cluster, &[("BACKUP", &backup)]);
    assert_eq!(nodes[1].change("PUT", "late"), 201);
    all_reject(&nodes, "late");

    (0..3).for_each(|nth| cluster.kill(nth));
    for nth in 0..3 {
        let data = cluster.new_folder(nth);
        let (name, peer_url) = cluster.name_and_peer_url(nth);
        let variables = [("NAME", &*name), ("PEER_URL", &peer_url), ("DATA_DIR", &data), ("BACKUP", &backup)];
        run("restore", &cluster, &[&variables[..], &[("TOKEN", "restored-once")]].concat());
    }
    while !cluster.launch_all() {}
    for node in &nodes {
        let why = in_state(node, "waiting")["why"].to_string();
        assert!(why.contains("lost something") && why.contains("`fleet accept`"), "{why}");
        assert_eq!(node.ask("GET", "/protected", &["late"], "").0, 503);
        assert_eq!(node.change("PUT", "more"), 503);
        assert_eq!(node.get("/livez").0, 200);
    }
    let said = run("accept", &cluster, &[]);
    let lines: Vec<_> = said.lines().collect();
    assert!(lines.len() == 4 && lines[3].starts_with("accepted: "), "{said}");
    for line in &lines[..3] {
        assert!(
            line.contains(": cluster ") && line.contains(" 1 records, last change ") && line.contains(" at 20"),
            "{said}"
        );
    }
    nodes.iter().for_each(Node::wait_until_ready);
    let cluster_id = nodes[0].get("/healthz").1["cluster"].as_str().unwrap().to_owned();
    assert!(lines[0].contains(&format!(": cluster {cluster_id}, ")), "{said}");
    assert_eq!((nodes[0].protected("early"), nodes[0].protected("late")), (401, 200));
    assert_eq!(nodes[0].change("PUT", "late"), 201);
    all_reject(&nodes, "late");
    assert!(run("accept", &cluster, &[]).ends_with("the fleet does not wait for anything\n"));
    Some(())
}

fn replace_a_member() {
    let Some(mut cluster) = Cluster::start(3, &[]) else { return };
    let nodes = three(&cluster, &[]);
    assert_eq!(nodes[0].change("PUT", "alice"), 201);
    cluster.secede(0);
    all_reject(&nodes, "alice");
    cluster.kill(0);
    let (name, peer_url) = cluster.name_and_peer_url(0);
    let healthy = cluster.endpoint(1);
    let variables = [("NAME", &*name), ("PEER_URL", &peer_url), ("HEALTHY", &healthy)];
    // The others may have lost their leader with it.
    cluster.leader_of(&[1, 2]);
    wait("it to be removed", || {
        _ = try_to_run("remove", &cluster, &variables);
        (!cluster.ctl_of(1, &["member", "list"]).contains(&format!(", {name}, "))).then_some(())
    });
    wait("the others to be healthy", || try_to_run("add", &cluster, &variables).status.success().then_some(()));
    cluster.rejoin(0);
    wait("the member to have it", || cluster.ctl_of(0, &["get", "revoked/head"]).contains("revoked").then_some(()));
    cluster.kill(1);
    all_reject(&nodes, "alice");
    assert_eq!(nodes[1].change("PUT", "bob"), 201);
    all_reject(&nodes, "bob");
}

fn make_space() {
    let Some(cluster) = Cluster::start(3, &["--quota-backend-bytes", "4194304"]) else { return };
    let nodes = three(&cluster, &[]);
    assert_eq!(nodes[0].change("PUT", "alice"), 201);
    cluster.fill();
    wait("a refusal", || (nodes[0].change("PUT", "bob") == 503).then_some(()));
    all_reject(&nodes, "alice");
    run("space", &cluster, &[]);
    nodes.iter().for_each(Node::wait_until_ready);
    assert_eq!(nodes[0].change("PUT", "bob"), 201);
    all_reject(&nodes, "bob");
}

/// Every node is restarted alone, and another one is ready all the time.
fn authenticate() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let mut nodes = three(&cluster, &[]);
    assert_eq!(nodes[0].change("PUT", "alice"), 201);
    let secrets = [("PASSWORD", "old"), ("NEW_PASSWORD", "new"), ("ROOT_PASSWORD", "root")];
    let restart = |nodes: &mut [Node; 3], variables: &[(&str, &str)]| {
        for nth in 0..3 {
            nodes[nth] = Node::start_with(&cluster.urls(nth), variables);
            all_reject(nodes, "alice");
        }
    };
    let check = |nodes: &[Node; 3], token: &str| {
        all_reject(nodes, "alice");
        assert_eq!(nodes[2].change("PUT", token), 201);
        all_reject(nodes, token);
    };
    run("user", &cluster, &secrets);
    let user = ("FLEET_ETCD_USER", "fleet");
    restart(&mut nodes, &[user, ("FLEET_ETCD_PASSWORD", "old")]);
    run("enable", &cluster, &secrets);
    check(&nodes, "after-on");
    restart(&mut nodes, &[user, ("FLEET_ETCD_PASSWORD", "old"), ("FLEET_ETCD_OTHER_PASSWORD", "new")]);
    run("password", &cluster, &secrets);
    check(&nodes, "after-password");
    restart(&mut nodes, &[user, ("FLEET_ETCD_PASSWORD", "new")]);
    run("disable", &cluster, &secrets);
    check(&nodes, "after-off");
    restart(&mut nodes, &[]);
}

fn change_settings() {
    let Some(cluster) = Cluster::start(3, &[]) else { return };
    let nodes = three(&cluster, &["--capacity", "1000"]);
    let exp = now() + 3600;
    assert_eq!(nodes[0].ask("PUT", "/revoked", &[], &json!({ "token": "alice", "exp": exp }).to_string()).0, 201);
    drop(nodes);
    run("settings", &cluster, &[]);
    all_reject(&three(&cluster, &["--capacity", "2000"]), "alice");
}

/// The README has a table of guarantees, each with its tests.
#[test]
fn the_tests_of_the_guarantees_are_there() {
    fn read_all(folder: &Path, all: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read_all(&path, all);
            } else {
                all.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = String::new();
    ["src", "tests"].iter().for_each(|folder| read_all(&package.join(folder), &mut sources));
    let words = include_str!("../README.md").split('`').filter(|word| word.matches('_').count() > 3);
    let missing: Vec<_> = words.filter(|word| !sources.contains(&format!("fn {word}("))).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
