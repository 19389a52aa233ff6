//! Authentication and TLS.

use std::fs;
use std::process::{Command, Stdio};

use fleet::{Etcd, Settings, SharedArguments, State};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::nodes::{Local, SMALL, found, until};
use crate::support::cluster::{Cluster, Process, own_address};
use crate::support::has_etcd;

fn settings(cluster: &Cluster, user: &str, password: &str) -> Settings {
    let etcd = Etcd { user: Some(user.into()), password: Some(password.into()), ..Etcd::new(&cluster.urls(0)) };
    Settings { etcd, ..Settings::new("") }
}

/// Authentication is turned on while nodes run, logins expire, a user replaces another one, and it is turned off.
#[tokio::test(flavor = "multi_thread")]
async fn logins_expire_and_users_change_while_the_fleet_runs() {
    let Some(cluster) = Cluster::start(1, &["--auth-token-ttl", "3"]) else { return };
    found(&cluster, &SMALL).await;
    cluster.ctl(&["role", "add", "fleet"]);
    cluster.ctl(&["role", "grant-permission", "--prefix=true", "fleet", "readwrite", "revoked/"]);
    for (user, role) in [("root:root", "root"), ("one:first", "fleet"), ("two:second", "fleet")] {
        cluster.ctl(&["user", "add", user]);
        cluster.ctl(&["user", "grant-role", user.split(':').next().unwrap(), role]);
    }
    let one = Local::begin_with(settings(&cluster, "one", "first"), 0);
    one.is_in(State::Ready).await; // Authentication is still off.
    one.revoke("alice").await;
    cluster.ctl(&["auth", "enable"]);
    one.revoke("bob").await;
    one.is_in(State::Ready).await;
    // Unused, a login ends after three seconds.
    let two = Local::begin_with(settings(&cluster, "two", "second"), 0);
    two.is_in(State::Ready).await;
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    for node in [&one, &two] {
        node.revoke("carol").await;
        node.is_in(State::Ready).await;
        assert!(node.answer("alice").await && !node.answer("fine").await);
    }
    // A wrong password: the node says so, and lets nothing pass.
    let wrong = Local::begin_with(settings(&cluster, "two", "wrong"), 0);
    until("the reason", async || wrong.node.health().why.contains("authentication failed").then_some(())).await;
    wrong.never_passes("alice").await;
    wrong.node.is_revoked("fine").await.unwrap_err();
    cluster.ctl(&["--user", "root:root", "user", "delete", "one"]);
    one.never_passes("alice").await;
    two.revoke("dave").await;
    cluster.ctl(&["--user", "root:root", "auth", "disable"]);
    for node in [&one, &two] {
        until("all to know", async || node.answer("dave").await.then_some(())).await;
        node.is_in(State::Ready).await;
    }
}

/// Both sides show certificates.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_reaches_etcd_by_tls() {
    if !has_etcd() {
        return;
    }
    let (address, _held) = own_address();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(path("authority"), authority.self_signed(&authority_key).unwrap().pem()).unwrap();
    let authority = Issuer::new(authority, authority_key);
    for name in ["member", "node"] {
        let key = KeyPair::generate().unwrap();
        let of = CertificateParams::new(vec!["localhost".into(), address.to_string()]).unwrap();
        fs::write(path(name), of.signed_by(&key, &authority).unwrap().pem()).unwrap();
        fs::write(path(&format!("{name}-key")), key.serialize_pem()).unwrap();
    }
    let (clients, peers) = (format!("https://{address}:2379"), format!("http://{address}:2380"));
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "etcd", "--client-cert-auth", "--logger", "zap"]);
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    for (option, file) in [
        ("--data-dir", "data"),
        ("--trusted-ca-file", "authority"),
        ("--cert-file", "member"),
        ("--key-file", "member-key"),
    ] {
        command.arg(option).arg(path(file));
    }
    let _member = Process(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());

    let etcd = Etcd {
        authority: Some(path("authority")),
        certificate: Some(path("node")),
        key: Some(path("node-key")),
        ..Etcd::new(&clients)
    };
    until("the fleet", async || fleet::found(&etcd, "revoked", &SharedArguments::default()).await.ok()).await;
    let node = Local::begin_with(Settings { etcd: etcd.clone(), ..Settings::new("") }, 0);
    node.is_in(State::Ready).await;
    node.revoke("alice").await;
    assert!(node.answer("alice").await);
    // Without a certificate of its own it is rejected, and with another authority it does not believe etcd.
    let anonymous = Local::begin_with(
        Settings { etcd: Etcd { certificate: None, key: None, ..etcd.clone() }, ..Settings::new("") },
        0,
    );
    let distrustful =
        Local::begin_with(Settings { etcd: Etcd { authority: Some(path("node")), ..etcd }, ..Settings::new("") }, 0);
    for node in [&anonymous, &distrustful] {
        node.never_passes("alice").await;
        assert!(!node.node.is_ready());
    }
}
