//! Runs the blocks of `OPERATIONS.md` as they are written there, on a cluster of three members with three nodes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use fleet::{Etcd, SharedArguments};

use crate::nodes::{Program, SMALL, found};
use crate::support::cluster::Cluster;
use crate::support::wait;

const PAGE: &str = include_str!("../../OPERATIONS.md");

/// The blocks of the page that have been run.
static RUN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// The blocks of the page that have a name.
fn blocks() -> impl Iterator<Item = (&'static str, String)> {
    PAGE.split("```sh ").skip(1).map(|block| {
        let (name, rest) = block.split_once('\n').unwrap();
        (name, rest.split("```").next().unwrap().to_owned())
    })
}

/// What a block prints, with these variables.
#[track_caller]
fn run(name: &'static str, cluster: &Cluster, variables: &[(&str, &str)]) -> String {
    let said = try_to_run(name, cluster, variables);
    assert!(said.status.success(), "{name}: {said:?}");
    String::from_utf8(said.stdout).unwrap()
}

#[track_caller]
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

/// Waits until `/healthz` says this.
fn says(node: &Program, why: &str) {
    wait(why, || node.get("/healthz").1["why"].as_str().is_some_and(|said| said.contains(why)).then_some(()));
}

fn three(cluster: &Cluster) -> [Program; 3] {
    [0, 1, 2].map(|nth| Program::ready(&cluster.urls(nth), &[]))
}

#[track_caller]
fn all_reject(nodes: &[Program], token: &str) {
    for node in nodes {
        node.wait_until_ready();
        wait("all to know", || (node.protected(token) == 401).then_some(()));
    }
}

/// One test, so that it can tell at the end that no block was left out.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_page_says_what_works() {
    let options = ["--quota-backend-bytes", "6000000", "--auth-token-ttl", "3"];
    let Some(mut cluster) = Cluster::start(3, &options) else { return };
    found(&cluster, &SMALL).await;
    let mut nodes = three(&cluster);
    assert_eq!(nodes[0].revoke("alice"), 201);
    all_reject(&nodes, "alice");
    change_settings(&cluster, &nodes);
    make_space(&cluster, &nodes);
    authenticate(&cluster, &mut nodes);
    // Members have new addresses: here, those without the proxies.
    for nth in 0..3 {
        nodes[nth] = Program::ready(&cluster.endpoints(), &[]);
        all_reject(&nodes, "alice");
    }
    replace_a_member(&mut cluster, &nodes);
    let nodes = three(&cluster);
    accept_a_mass_deletion(&cluster, &nodes);
    restore_a_backup(&mut cluster, &nodes).await;
    go_on_with_one_member(&mut cluster, &nodes);
    let run = RUN.lock().unwrap().clone();
    assert_eq!(run, blocks().map(|(name, _)| name).collect());
}

fn change_settings(cluster: &Cluster, nodes: &[Program]) {
    run("settings", cluster, &[]);
    for node in nodes {
        wait("the settings", || (node.get("/healthz").1["epoch"]["settings"]["capacity"] == 2_000_000).then_some(()));
    }
    all_reject(nodes, "alice");
    let of = |settings: SharedArguments| settings.over(&fleet::Shared::default());
    assert_eq!(nodes[0].get("/healthz").1["epoch"]["settings"]["margin"], of(SMALL).margin, "it stays");
}

fn make_space(cluster: &Cluster, nodes: &[Program]) {
    cluster.fill();
    wait("an error", || (nodes[0].revoke("bob") == 503).then_some(()));
    all_reject(nodes, "alice");
    // A node starts all the same. It says at once why it can't revoke, not when its patience is over.
    let new = Program::ready(&cluster.urls(0), &["--patience", "10min"]);
    assert_eq!((new.protected("alice"), new.protected("fine")), (401, 200));
    let (status, body) = new.ask("PUT", "/revoked", &[], "{\"token\": \"bob\"}");
    assert!(status == 503 && body["error"].as_str().unwrap().contains("space exceeded"), "{body}");
    run("space", cluster, &[]);
    wait("space", || (nodes[0].revoke("bob") < 300).then_some(()));
    all_reject(nodes, "bob");
}

/// Every node is restarted alone, and another one is ready all the time.
fn authenticate(cluster: &Cluster, nodes: &mut [Program; 3]) {
    let secrets = [("PASSWORD", "old"), ("NEW_PASSWORD", "new"), ("ROOT_PASSWORD", "root")];
    let restart = |nodes: &mut [Program; 3], user: &str, password: &str| {
        for nth in 0..3 {
            let variables = [("FLEET_ETCD_USER", user), ("FLEET_ETCD_PASSWORD", password)];
            nodes[nth] = Program::begin(&cluster.urls(nth), &[], &variables);
            all_reject(nodes, "alice");
        }
    };
    let check = |nodes: &[Program; 3], token: &str| {
        wait("a change", || (nodes[2].revoke(token) < 300).then_some(()));
        all_reject(nodes, token);
    };
    run("user", cluster, &secrets);
    restart(nodes, "fleet-1", "old");
    run("enable", cluster, &secrets);
    check(nodes, "after-on");
    // A login that is not used for three seconds ends.
    std::thread::sleep(Duration::from_secs(4));
    check(nodes, "after-logins-have-ended");
    let wrong =
        Program::begin(&cluster.urls(0), &[], &[("FLEET_ETCD_USER", "fleet-1"), ("FLEET_ETCD_PASSWORD", "wrong")]);
    says(&wrong, "authentication failed");
    assert_eq!(wrong.ask("GET", "/protected", &["fine"], "").0, 503);
    run("new-user", cluster, &secrets);
    restart(nodes, "fleet-2", "new");
    run("old-user", cluster, &secrets);
    check(nodes, "after-another-user");
    run("disable", cluster, &secrets);
    check(nodes, "after-off");
}

const EXISTING: [&str; 2] = ["--initial-cluster-state", "existing"];

fn replace_a_member(cluster: &mut Cluster, nodes: &[Program]) {
    cluster.secede(0);
    all_reject(nodes, "alice");
    cluster.kill(0);
    let (name, peer_url) = cluster.name_and_peer_url(0);
    let healthy = cluster.endpoint(1);
    let variables = [("NAME", &*name), ("PEER_URL", &peer_url), ("HEALTHY", &healthy)];
    // A member that starts asks one of the others.
    let both = |cluster: &Cluster, know: bool| {
        [1, 2].into_iter().all(|nth| cluster.members_known_to(nth).contains(&peer_url) == know).then_some(())
    };
    wait("it to be removed", || {
        _ = try_to_run("remove", cluster, &variables);
        both(cluster, false)
    });
    // What it says when the one that it asks has not heard of it yet. It can start again.
    cluster.wipe(0);
    assert!(cluster.start_in_vain(0, &EXISTING).contains("member count is unequal"));
    // An answer that comes too late looks like an error.
    wait("it to be added", || {
        _ = try_to_run("add", cluster, &variables);
        both(cluster, true)
    });
    cluster.restart_with(0, &EXISTING);
    cluster.wait_until_healthy(0);
    cluster.kill(1);
    wait("a change", || (nodes[1].revoke("carol") < 300).then_some(()));
    all_reject(nodes, "carol");
    cluster.restart(1);
}

fn accept_a_mass_deletion(cluster: &Cluster, nodes: &[Program]) {
    cluster.ctl(&["del", "--prefix", "revoked/"]);
    for node in nodes {
        says(node, "fleet accept");
        assert_eq!(node.ask("GET", "/protected", &["alice"], "").0, 503);
        assert_eq!((node.revoke("more"), node.get("/livez").0), (503, 200));
    }
    let said = run("accept", cluster, &[]);
    assert!(said.contains("\"lost\":\"") && said.contains("capacity: 2000000"), "{said}");
    nodes.iter().for_each(Program::wait_until_ready);
    assert_eq!(nodes[0].protected("alice"), 200, "it was lost, and that was accepted");
    assert_eq!(nodes[0].revoke("alice"), 201);
    all_reject(nodes, "alice");
}

async fn restore_a_backup(cluster: &mut Cluster, nodes: &[Program]) {
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup").to_str().unwrap().to_owned();
    run("backup", cluster, &[("BACKUP", &backup)]);
    assert_eq!(nodes[1].revoke("late"), 201);
    all_reject(nodes, "late");
    let health = nodes[0].get("/healthz").1;
    let command = format!("fleet accept --from {}", health["epoch"]["cluster"].as_str().unwrap());
    (0..3).for_each(|nth| cluster.kill(nth));
    for nth in 0..3 {
        let data = cluster.new_folder(nth);
        let (name, peer_url) = cluster.name_and_peer_url(nth);
        let variables = [("NAME", &*name), ("PEER_URL", &peer_url), ("DATA_DIR", &data), ("BACKUP", &backup)];
        run("restore", cluster, &[&variables[..], &[("TOKEN", "restored-once")]].concat());
    }
    cluster.launch_all();
    for node in nodes {
        says(node, &command);
        wait("its memory to be too old", || (node.ask("GET", "/protected", &["fine"], "").0 == 503).then_some(()));
        assert_eq!(node.ask("GET", "/protected", &["late"], "").0, 503);
    }
    // The commands go by a copy only if the operator names the cluster that has ended.
    says(&Program::begin(&cluster.urls(0), &[], &[]), &command);
    let etcd = Etcd::new(&cluster.urls(0));
    for from in [None, Some("abc")] {
        let why = fleet::accept(&etcd, "revoked", from, &SharedArguments::default()).await.unwrap_err();
        assert!(why.contains(&command) && why.contains("for good"), "{why}");
    }
    assert!(fleet::found(&etcd, "revoked", &SMALL).await.is_err());
    run("accept-from", cluster, &[]);
    nodes.iter().for_each(Program::wait_until_ready);
    assert_eq!((nodes[0].protected("alice"), nodes[0].protected("late")), (401, 200));
    assert_eq!(nodes[0].revoke("late"), 201);
    all_reject(nodes, "late");
}

fn go_on_with_one_member(cluster: &mut Cluster, nodes: &[Program]) {
    (0..3).for_each(|nth| cluster.kill(nth));
    // It may lack the last changes, which these nodes notice.
    cluster.restart_with(2, &["--force-new-cluster"]);
    cluster.wait_until_healthy(2);
    run("accept", cluster, &[("ENDPOINTS", &cluster.endpoint(2))]);
    for token in ["late", "dave"] {
        wait("a change", || (nodes[0].revoke(token) < 300).then_some(()));
        all_reject(nodes, token);
    }
}

/// The page names each alert, and each alert goes by figures that a node has.
#[tokio::test(flavor = "multi_thread")]
async fn alerts_go_by_figures_of_a_node() {
    let Some(cluster) = crate::nodes::fleet(1).await else { return };
    let page = Program::ready(&cluster.urls(0), &[]).get("/metrics").1.to_string();
    let alerts = include_str!("../../deploy/alerts.yaml");
    let after = |line: &'static str, word| line.split_once(word).map(|(_, rest)| rest);
    for name in alerts.lines().filter_map(|line| after(line, "alert: ")) {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
    let words = alerts
        .lines()
        .filter_map(|line| after(line, "expr: "))
        .flat_map(|line| line.split(|c: char| !c.is_ascii_lowercase() && c != '_').filter(|word| word.contains('_')));
    let words: BTreeSet<_> = words.collect();
    assert!(words.len() >= 6 && words.iter().all(|word| page.contains(&format!("# TYPE {word} "))), "{words:?}");
}
