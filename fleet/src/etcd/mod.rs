//! A client of etcd: the calls that a node needs, to one of several members.

mod build;
#[expect(unreachable_pub, reason = "it is generated")]
pub(crate) mod messages;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::uri::PathAndQuery;
use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

pub(crate) use self::build::{compare, exists, put, range, range_of, response_range, revision, same, txn};
use self::messages::{
    AuthenticateRequest, AuthenticateResponse, LeaseGrantRequest, LeaseGrantResponse, RangeRequest, RangeResponse,
    TxnRequest, TxnResponse, WatchCreateRequest, WatchRequest, WatchResponse, watch_request,
};

/// Where the cluster is, and how to log in.
#[derive(Clone, Default)]
pub struct Etcd {
    /// `http://HOST:PORT` or `https://HOST:PORT` of each member.
    pub members: Vec<String>,
    /// A user of etcd's and the password.
    pub login: Option<(String, String)>,
    /// A PEM file with the authority of the members' certificates, instead of those that the system trusts.
    pub authority: Option<PathBuf>,
    /// PEM files with the certificate that the node shows, and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Etcd {
    /// Members at these addresses, separated by commas.
    pub fn new(members: &str) -> Self {
        Self { members: members.split(',').map(|member| member.trim().to_owned()).collect(), ..Self::default() }
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
    #[error(
        "etcd has refused this: {0}; {remedy}",
        remedy = "give the node's user the right to read and write the keys FLEET/"
    )]
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
            Code::PermissionDenied => Self::Denied(said.into()),
            Code::InvalidArgument if said.contains("auth") || said.contains("user name") => Self::Denied(said.into()),
            Code::Unauthenticated => Self::Denied(said.into()),
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

/// One member, and the connection to it.
struct Member {
    url: String,
    endpoint: Endpoint,
    channel: Mutex<Channel>,
}

pub(crate) struct Client {
    members: Vec<Member>,
    /// The member that is asked first.
    pub(crate) current: AtomicUsize,
    login: Option<(String, String)>,
    token: Mutex<Option<MetadataValue<Ascii>>>,
    one_try: Duration,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some((certificate, key)) = &etcd.certificate {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        let member = |url: &String| {
            let wrong = |why: String| {
                format!("{url:?} is no address of etcd: {why}; give http://HOST:PORT or https://HOST:PORT")
            };
            let mut endpoint = Endpoint::from_shared(url.clone()).map_err(|error| wrong(error.to_string()))?;
            endpoint = match endpoint.uri().scheme_str() {
                Some("http") => endpoint,
                Some("https") => {
                    endpoint.tls_config(tls.clone()).map_err(|error| format!("TLS towards {url}: {error}"))?
                }
                _ => return Err(wrong("it has no such scheme".into())),
            };
            // Etcd closes connections that ask for signs of life more often than every 5 seconds.
            let endpoint = endpoint
                .connect_timeout(one_try)
                .tcp_nodelay(true)
                .http2_keep_alive_interval(Duration::from_secs(6))
                .keep_alive_timeout(Duration::from_secs(4))
                .keep_alive_while_idle(true);
            let channel = Mutex::new(endpoint.connect_lazy());
            Ok(Member { url: url.clone(), endpoint, channel })
        };
        let members = etcd.members.iter().map(member).collect::<Result<Vec<_>, _>>()?;
        let login = etcd.login.clone();
        Ok(Self { members, current: AtomicUsize::new(0), login, token: Mutex::default(), one_try })
    }

    /// Another connection, to this member (modulo their number).
    pub(crate) fn connection(&self, nth: usize) -> (Channel, String) {
        let member = &self.members[nth % self.members.len()];
        (member.endpoint.connect_lazy(), member.url.clone())
    }

    /// The same request to one member after the other, until one of them has answered or the time is over. What is sent
    /// again must change nothing the second time.
    async fn ask<Q, A>(&self, path: &'static str, message: &Q, until: Instant) -> Result<A, Fault>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
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
            let member = &self.members[current % self.members.len()];
            let channel = lock(&member.channel).clone();
            let limit = self.one_try.min(until.saturating_duration_since(Instant::now()));
            let fault = match self.call(&channel, &member.url, path, message.clone(), limit).await {
                Err(fault @ (Fault::Unclear(_) | Fault::Future)) => fault,
                answer => return answer,
            };
            if matches!(fault, Fault::Unclear(_)) {
                // A connection that has lost something may stay silent for long.
                *lock(&member.channel) = member.endpoint.connect_lazy();
            }
            // Only one of those that had this fault takes the next.
            _ = self.current.compare_exchange(current, current + 1, Ordering::Relaxed, Ordering::Relaxed);
            asked += 1;
            let pause =
                if asked % self.members.len() == 0 { pauses.next().unwrap_or_default() } else { Duration::ZERO };
            if Instant::now() + pause >= until || (fault == Fault::Future && asked >= self.members.len()) {
                return Err(fault);
            }
            sleep(pause).await;
        }
    }

    /// One request to one member.
    pub(crate) async fn call<Q, A>(
        &self,
        channel: &Channel,
        member: &str,
        path: &'static str,
        message: Q,
        limit: Duration,
    ) -> Result<A, Fault>
    where
        Q: prost::Message + Clone + 'static,
        A: prost::Message + Default + 'static,
    {
        let calling = async {
            match self.once(channel, path, self.request(channel, message.clone()).await?).await {
                // The token that the login gave is forgotten after some minutes.
                Err(status) if status.code() == Code::Unauthenticated && self.login.is_some() => {
                    *lock(&self.token) = None;
                    self.once(channel, path, self.request(channel, message).await?).await
                }
                answer => answer,
            }
        };
        match timeout(limit, calling).await {
            Ok(answer) => answer.map_err(|status| Fault::of(&status, member)),
            Err(_) => Err(Fault::Unclear(format!("{member}: no answer within {limit:?}"))),
        }
    }

    async fn request<Q>(&self, channel: &Channel, message: Q) -> Result<Request<Q>, Status> {
        let mut request = Request::new(message);
        if let Some((name, password)) = &self.login {
            let known = lock(&self.token).clone();
            let token = match known {
                Some(token) => token,
                None => {
                    let login = AuthenticateRequest { name: name.clone(), password: password.clone() };
                    let path = "/etcdserverpb.Auth/Authenticate";
                    let answer: AuthenticateResponse = self.once(channel, path, Request::new(login)).await?;
                    let token = answer.token.parse().map_err(|_| Status::internal("the token is no header"))?;
                    lock(&self.token).insert(token).clone()
                }
            };
            request.metadata_mut().insert("token", token);
        }
        Ok(request)
    }

    async fn once<Q, A>(&self, channel: &Channel, path: &'static str, request: Request<Q>) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let answer = grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default()).await?;
        Ok(answer.into_inner())
    }

    pub(crate) async fn txn(&self, txn: &TxnRequest, until: Instant) -> Result<TxnResponse, Fault> {
        self.ask("/etcdserverpb.KV/Txn", txn, until).await
    }

    pub(crate) async fn range(&self, range: &RangeRequest, until: Instant) -> Result<RangeResponse, Fault> {
        self.ask("/etcdserverpb.KV/Range", range, until).await
    }

    /// A lease of this many seconds, at least.
    pub(crate) async fn lease(&self, seconds: i64, until: Instant) -> Result<i64, Fault> {
        let grant = LeaseGrantRequest { ttl: seconds, id: 0 };
        let lease: LeaseGrantResponse = self.ask("/etcdserverpb.Lease/LeaseGrant", &grant, until).await?;
        if lease.error.is_empty() { Ok(lease.id) } else { Err(Fault::Unclear(lease.error)) }
    }

    /// Everything that happens to these keys from this revision on.
    pub(crate) async fn watch(
        &self,
        channel: &Channel,
        member: &str,
        create: WatchCreateRequest,
        limit: Duration,
    ) -> Result<Streaming<WatchResponse>, Fault> {
        let create = WatchRequest { request: Some(watch_request::Request::Create(create)) };
        let watching = async {
            // The stream of requests stays open; etcd would end the watch with it.
            let requests = tokio_stream::once(create).chain(tokio_stream::pending());
            let request = self.request(channel, requests).await?;
            let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(usize::MAX);
            grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            grpc.streaming(request, path, ProstCodec::<WatchRequest, WatchResponse>::default()).await
        };
        match timeout(limit, watching).await {
            Ok(stream) => stream.map(|stream| stream.into_inner()).map_err(|status| Fault::of(&status, member)),
            Err(_) => Err(Fault::Unclear(format!("{member}: no watch within {limit:?}"))),
        }
    }
}
