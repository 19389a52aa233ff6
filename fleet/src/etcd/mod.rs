//! A client of etcd: the calls that a node needs, to one of several members.

pub(crate) mod build;
#[expect(unreachable_pub, reason = "it is generated")]
pub(crate) mod messages;

use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::uri::PathAndQuery;
use backon::{BackoffBuilder, ExponentialBuilder};
use prost::Message;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use self::messages::{
    AuthenticateRequest, AuthenticateResponse, LeaseGrantRequest, LeaseGrantResponse, TxnRequest, TxnResponse,
    WatchCreateRequest, WatchRequest, WatchResponse,
};
use crate::lock;

/// Where the cluster is, and how to log in.
#[derive(Clone, Default, clap::Args)]
pub struct Etcd {
    /// The members of etcd: `http://HOST:PORT` or `https://HOST:PORT`, separated by commas
    #[arg(
        id = "etcd",
        long,
        value_name = "URLS",
        env = "FLEET_ETCD",
        value_delimiter = ',',
        default_value = "http://127.0.0.1:2379"
    )]
    pub members: Vec<String>,

    /// The user of etcd, with the password in FLEET_ETCD_PASSWORD
    #[arg(id = "etcd-user", long, value_name = "NAME", env = "FLEET_ETCD_USER", requires = "etcd-password")]
    pub user: Option<String>,

    /// The password of that user
    // Every user of the machine can read the command line.
    #[arg(id = "etcd-password", long, env = "FLEET_ETCD_PASSWORD", hide = true, hide_env_values = true)]
    pub password: Option<String>,

    /// The authority of the members' certificates, in a PEM file, instead of those that the system trusts
    #[arg(id = "etcd-authority", long, value_name = "FILE")]
    pub authority: Option<PathBuf>,

    /// The certificate that the node shows to etcd, in a PEM file
    #[arg(id = "etcd-certificate", long, value_name = "FILE", requires = "etcd-key")]
    pub certificate: Option<PathBuf>,

    /// The key of that certificate, in a PEM file
    #[arg(id = "etcd-key", long, value_name = "FILE", requires = "etcd-certificate")]
    pub key: Option<PathBuf>,
}

impl Etcd {
    /// Members at these addresses, separated by commas.
    pub fn new(members: &str) -> Self {
        Self { members: members.split(',').map(str::to_owned).collect(), ..Self::default() }
    }
}

/// Leaves out the password.
impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("members", &self.members).finish_non_exhaustive()
    }
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The member has not come to the revision. If a quorum says so, the cluster never has.
    #[error("the member knows no such revision yet")]
    Future,
    #[error("the revision was compacted")]
    Compacted,
    #[error("etcd has refused this: {0}; give the node's user the right to read and write the keys FLEET/")]
    Denied(String),
    #[error(
        "etcd has no space left ({0}): compact it, defragment it or raise --quota-backend-bytes, then `etcdctl alarm disarm`"
    )]
    NoSpace(String),
    #[error("the lease is not there any more")]
    NoLease,
    /// The outcome is unknown.
    #[error("{0}")]
    Unclear(String),
}

impl Fault {
    fn of(status: &Status, member: &str) -> Self {
        let said = status.message();
        match status.code() {
            Code::OutOfRange if said.contains("future") => Self::Future,
            Code::OutOfRange if said.contains("compacted") => Self::Compacted,
            Code::ResourceExhausted if said.contains("space") => Self::NoSpace(said.into()),
            Code::NotFound if said.contains("lease") => Self::NoLease,
            Code::PermissionDenied | Code::Unauthenticated => Self::Denied(said.into()),
            Code::InvalidArgument if said.contains("auth") || said.contains("user name") => Self::Denied(said.into()),
            code => {
                let mut why = format!("{member}: {said} ({code:?})");
                // What tonic says is only "transport error".
                let mut source = std::error::Error::source(status);
                while let Some(error) = source {
                    why = format!("{why}: {error}");
                    source = error.source();
                }
                Self::Unclear(why)
            }
        }
    }
}

/// A connection to one member.
#[derive(Clone)]
pub(crate) struct Connection {
    channel: Channel,
    pub(crate) member: String,
}

impl Connection {
    fn to(endpoint: &Endpoint) -> Self {
        Self { channel: endpoint.connect_lazy(), member: endpoint.uri().to_string() }
    }
}

pub(crate) struct Client {
    members: Vec<(Endpoint, Mutex<Connection>)>,
    /// The member that is asked first.
    pub(crate) current: AtomicUsize,
    login: Option<(String, String)>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
    one_try: Duration,
}

impl Client {
    /// A client that connects when it is needed. `one_try` is how long one member may take.
    pub(crate) fn new(etcd: &Etcd, one_try: Duration) -> Result<Self, String> {
        let read =
            |path: &PathBuf| std::fs::read(path).map_err(|error| format!("can't read {}: {error}", path.display()));
        let mut tls = match &etcd.authority {
            Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path)?)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let (Some(certificate), Some(key)) = (&etcd.certificate, &etcd.key) {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        let member = |url: &String| {
            let url = url.trim();
            let wrong = |why: &dyn fmt::Display| {
                format!("{url:?} is no address of etcd: {why}; give http://HOST:PORT or https://HOST:PORT")
            };
            let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| wrong(&error))?;
            let endpoint = match endpoint.uri().scheme_str() {
                Some("http") => endpoint,
                Some("https") => endpoint.tls_config(tls.clone()).map_err(|error| wrong(&error))?,
                _ => return Err(wrong(&"it has no such scheme")),
            };
            // Etcd closes connections that ask for signs of life more often than every 5 seconds.
            let endpoint = endpoint
                .connect_timeout(one_try)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(Duration::from_secs(6))
                .keep_alive_timeout(Duration::from_secs(4))
                .keep_alive_while_idle(true);
            let connection = Mutex::new(Connection::to(&endpoint));
            Ok((endpoint, connection))
        };
        let members: Vec<_> = etcd.members.iter().map(member).collect::<Result<_, _>>()?;
        if members.is_empty() {
            return Err("there is no address of etcd; give http://HOST:PORT or https://HOST:PORT of each member".into());
        }
        let login = etcd.user.clone().zip(etcd.password.clone());
        Ok(Self { members, current: AtomicUsize::new(0), login, token: Mutex::default(), one_try })
    }

    fn member(&self, nth: usize) -> &(Endpoint, Mutex<Connection>) {
        &self.members[nth % self.members.len()]
    }

    /// Another connection, to this member (modulo their number).
    pub(crate) fn connect(&self, nth: usize) -> Connection {
        Connection::to(&self.member(nth).0)
    }

    /// The same request to one member after the other, until one of them has answered or the time is over. What is sent
    /// again must change nothing the second time.
    async fn ask<Q, A>(&self, path: &'static str, message: &Q, until: Instant) -> Result<A, Fault>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(5))
            .with_max_delay(Duration::from_millis(300))
            .with_jitter()
            .without_max_times()
            .build();
        let mut asked = 0;
        loop {
            let current = self.current.load(Ordering::Relaxed);
            let connection = lock(&self.member(current).1).clone();
            let limit = self.one_request().min(until.saturating_duration_since(Instant::now()));
            let fault = match self.call(&connection, path, message.clone(), limit).await {
                Err(fault @ (Fault::Unclear(_) | Fault::Future)) => fault,
                answer => return answer,
            };
            // A connection that has lost something may stay silent for long.
            *lock(&self.member(current).1) = self.connect(current);
            // Only one of those that had this fault takes the next.
            _ = self.current.compare_exchange(current, current + 1, Ordering::Relaxed, Ordering::Relaxed);
            asked += 1;
            let pause = pauses.next().unwrap_or_default();
            if Instant::now() + pause >= until || (fault == Fault::Future && asked >= self.members.len()) {
                return Err(fault);
            }
            sleep(pause).await;
        }
    }

    /// How long a request may take. One that logs in takes longer: to check a password takes etcd some tenths of a second of
    /// processor time.
    fn one_request(&self) -> Duration {
        let logs_in = self.login.is_some() && lock(&self.token).is_none();
        if logs_in { 5 * self.one_try } else { self.one_try }
    }

    /// One request to one member.
    async fn call<Q, A>(&self, to: &Connection, path: &'static str, message: Q, limit: Duration) -> Result<A, Fault>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let calling = async {
            match once(to, path, self.request(to, message.clone()).await?).await {
                // The token that the login gave is forgotten after some minutes, or when rights change.
                Err(status)
                    if self.login.is_some()
                        && (status.code() == Code::Unauthenticated
                            || status.message().contains("auth store is old")) =>
                {
                    *lock(&self.token) = None;
                    once(to, path, self.request(to, message).await?).await
                }
                answer => answer,
            }
        };
        match timeout(limit, calling).await {
            Ok(answer) => answer.map_err(|status| Fault::of(&status, &to.member)),
            Err(_) => Err(Fault::Unclear(format!("{}: no answer within {limit:?}", to.member))),
        }
    }

    /// The request, with the token of the login.
    async fn request<Q>(&self, to: &Connection, message: Q) -> Result<Request<Q>, Status> {
        let mut request = Request::new(message);
        let Some((name, password)) = self.login.clone() else { return Ok(request) };
        let known = lock(&self.token).clone();
        let token = match known {
            Some(token) => token,
            None => {
                let login = Request::new(AuthenticateRequest { name, password });
                let answer: AuthenticateResponse = once(to, "/etcdserverpb.Auth/Authenticate", login).await?;
                let token = answer.token.parse().map_err(|_| Status::internal("the token is no header"))?;
                lock(&self.token).insert(token).clone()
            }
        };
        request.metadata_mut().insert("token", token);
        Ok(request)
    }

    /// A transaction, by any member.
    pub(crate) async fn txn(&self, txn: &TxnRequest, until: Instant) -> Result<TxnResponse, Fault> {
        self.ask("/etcdserverpb.KV/Txn", txn, until).await.and_then(|answer| complete(txn, answer))
    }

    /// A transaction, over this connection.
    pub(crate) async fn txn_over(
        &self,
        to: &Connection,
        txn: TxnRequest,
        limit: Duration,
    ) -> Result<TxnResponse, Fault> {
        let answer = self.call(to, "/etcdserverpb.KV/Txn", txn.clone(), limit.max(self.one_request())).await?;
        complete(&txn, answer)
    }

    /// A lease of this many seconds, at least.
    pub(crate) async fn lease(&self, ttl: i64, until: Instant) -> Result<i64, Fault> {
        let grant = LeaseGrantRequest { ttl };
        self.ask("/etcdserverpb.Lease/LeaseGrant", &grant, until).await.map(|lease: LeaseGrantResponse| lease.id)
    }

    /// Everything that happens to these keys from this revision on.
    pub(crate) async fn watch(
        &self,
        to: &Connection,
        create: WatchCreateRequest,
    ) -> Result<Streaming<WatchResponse>, Fault> {
        let watching = async {
            // The stream of requests stays open; etcd would end the watch with it.
            let create = tokio_stream::once(WatchRequest { create: Some(create) }).chain(tokio_stream::pending());
            let (mut grpc, request) = (ready(to).await?, self.request(to, create).await?);
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            grpc.streaming(request, path, ProstCodec::<WatchRequest, WatchResponse>::default()).await
        };
        match timeout(self.one_try, watching).await {
            Ok(stream) => stream.map(|stream| stream.into_inner()).map_err(|status| Fault::of(&status, &to.member)),
            Err(_) => Err(Fault::Unclear(format!("{}: no watch within {:?}", to.member, self.one_try))),
        }
    }
}

/// An answer in which something is missing would look like keys that are not there.
pub(crate) fn complete(asked: &TxnRequest, answer: TxnResponse) -> Result<TxnResponse, Fault> {
    fn is_complete(asked: &TxnRequest, answer: &TxnResponse) -> bool {
        let asked = if answer.succeeded { &asked.success } else { &asked.failure };
        asked.len() == answer.responses.len()
            && asked.iter().zip(&answer.responses).all(|(asked, answer)| match (&asked.txn, &answer.txn) {
                (Some(asked), Some(answer)) => is_complete(asked, answer),
                (asked_txn, txn) => {
                    asked_txn.is_none() && txn.is_none() && asked.range.is_some() == answer.range.is_some()
                }
            })
    }
    if is_complete(asked, &answer) { Ok(answer) } else { Err(Fault::Unclear("etcd's answer can't be read".into())) }
}

async fn ready(to: &Connection) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(to.channel.clone()).max_decoding_message_size(usize::MAX);
    grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
    Ok(grpc)
}

async fn once<Q, A>(to: &Connection, path: &'static str, request: Request<Q>) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = ready(to).await?;
    let answer = grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default()).await?;
    Ok(answer.into_inner())
}
