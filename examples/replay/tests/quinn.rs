//! A real client and server of `quinn` on loopback, and a client that brings one token again and again.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use quinn::rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use quinn::{
    BloomTokenLog, ClientConfig, Endpoint, ServerConfig, TokenLog, TokenReuseError, TokenStore, TransportConfig,
};
use replay::UsedOnce;
use tokio::sync::watch;

const LIFETIME: Duration = Duration::from_secs(14 * 86_400);

/// The tokens of a client that replays: it keeps the first one that it gets, and uses it for each connection.
struct FirstToken(watch::Sender<Option<Bytes>>);

impl TokenStore for FirstToken {
    fn insert(&self, _: &str, token: Bytes) {
        self.0.send_if_modified(|first| first.is_none() && first.replace(token).is_none());
    }
    fn take(&self, _: &str) -> Option<Bytes> {
        self.0.borrow().clone()
    }
}

/// A log that forgets at once.
struct Forgetful;

impl TokenLog for Forgetful {
    fn check_and_insert(&self, _: u128, _: SystemTime, _: Duration) -> Result<(), TokenReuseError> {
        Ok(())
    }
}

/// No connection ends because the machine is busy.
fn patient() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(None);
    Arc::new(transport)
}

/// Whether the server knew the client's address to be valid when it saw the first packet of each of three connections.
/// The client has no token for the first one, and the same token for the others.
async fn validated_by_token(log: Arc<dyn TokenLog>) -> [bool; 3] {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![certified.cert.der().clone()], key.into()).unwrap();
    config.validation_token.lifetime(LIFETIME).sent(1).log(log);
    config.transport_config(patient());
    let server = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into()).unwrap();

    let (first_token, mut token) = watch::channel(None);
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    config.token_store(Arc::new(FirstToken(first_token)));
    config.transport_config(patient());
    let client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();

    let mut validated = [false; 3];
    for validated in &mut validated {
        let address = server.local_addr().unwrap();
        let connecting = client.connect_with(config.clone(), address, "localhost").unwrap();
        let serve = async {
            let mut incoming = server.accept().await.unwrap();
            *validated = incoming.remote_address_validated();
            // A slow client may send its first packet twice, so there may be several of these.
            while !incoming.remote_address_validated() {
                incoming.retry().unwrap();
                incoming = server.accept().await.unwrap();
            }
            incoming.await.unwrap()
        };
        let (connection, _served) = tokio::join!(async { connecting.await.unwrap() }, serve);
        token.wait_for(Option::is_some).await.unwrap();
        connection.close(0_u32.into(), b"");
    }
    validated
}

#[tokio::test]
async fn a_token_validates_an_address_once() {
    let log = UsedOnce::new(LIFETIME, 1000, 1e-6).unwrap();
    assert_eq!(validated_by_token(Arc::new(log)).await, [false, true, false]);
}

#[tokio::test]
async fn it_is_the_log_that_refuses_the_second_use() {
    assert_eq!(validated_by_token(Arc::new(BloomTokenLog::default())).await, [false, true, false]);
    assert_eq!(validated_by_token(Arc::new(Forgetful)).await, [false, true, true]);
}
