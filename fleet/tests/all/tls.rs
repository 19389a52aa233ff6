//! A cluster of etcd that is reached by TLS.

use std::fs;

use fleet::{Etcd, Settings, SharedArguments, State};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::nodes::{Local, until};
use crate::support::cluster::Cluster;

/// Both sides show certificates.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_reaches_etcd_by_tls() {
    let Some(mut cluster) = Cluster::start(1, &[]) else { return };
    let url = cluster.endpoint(0).replace("http:", "https:");
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(vec![]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(path("authority"), authority.self_signed(&authority_key).unwrap().pem()).unwrap();
    let authority = Issuer::new(authority, authority_key);
    for name in ["member", "node"] {
        let key = KeyPair::generate().unwrap();
        let of = CertificateParams::new(vec![cluster.members[0].address.to_string()]).unwrap();
        fs::write(path(name), of.signed_by(&key, &authority).unwrap().pem()).unwrap();
        fs::write(path(&format!("{name}-key")), key.serialize_pem()).unwrap();
    }
    let [trusted, certificate, key] =
        ["authority", "member", "member-key"].map(|name| path(name).display().to_string());
    let urls = ["--listen-client-urls", &url, "--advertise-client-urls", &url];
    let files = ["--trusted-ca-file", &trusted, "--cert-file", &certificate, "--key-file", &key];
    cluster.kill(0);
    cluster.launch(0, &[&urls[..], &files, &["--client-cert-auth"]].concat());

    let etcd = Etcd {
        authority: Some(path("authority")),
        certificate: Some(path("node")),
        key: Some(path("node-key")),
        ..Etcd::new(&url)
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
