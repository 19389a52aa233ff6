//! A cluster of etcd that is reached by TLS.

use std::fs;
use std::process::{Command, Stdio};

use fleet::{Etcd, Settings, SharedArguments, State};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::nodes::{Local, until};
use crate::support::cluster::{Process, own_address};
use crate::support::has_etcd;

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
    let begin = |etcd: &Etcd| Local::begin_with(Settings { etcd: etcd.clone(), ..Settings::new("") }, 0);
    let node = begin(&etcd);
    node.is_in(State::Ready).await;
    node.revoke("alice").await;
    assert!(node.answer("alice").await);
    // Without a certificate of its own it is rejected, and with another authority it does not believe etcd.
    for etcd in
        [Etcd { certificate: None, key: None, ..etcd.clone() }, Etcd { authority: Some(path("node")), ..etcd.clone() }]
    {
        let rejected = begin(&etcd);
        rejected.never_passes("alice").await;
        assert!(!rejected.node.is_ready());
    }
}
