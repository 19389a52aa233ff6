//! A client of etcd: the calls that a node needs, to one of several members.

pub(crate) mod build;
mod endpoints;
mod fault;
#[expect(unreachable_pub, reason = "it is generated")]
pub(crate) mod messages;

use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

pub use self::endpoints::Etcd;
pub(crate) use self::fault::Fault;
use self::messages::{
    AuthenticateRequest, AuthenticateResponse, Header, LeaseGrantRequest, LeaseGrantResponse, TxnRequest, TxnResponse,
    WatchCreateRequest, WatchRequest, WatchResponse,
};
use crate::lock;

/// An answer that says which cluster gave it, as every answer of etcd does.
pub(crate) trait Answer: Message + Default + 'static {
    fn header(&self) -> Option<&Header>;

    fn cluster(&self) -> u64 {
        self.header().map_or(0, |header| header.cluster_id)
    }
}

impl Answer for TxnResponse {
    fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }
}

impl Answer for LeaseGrantResponse {
    fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }
}

impl Answer for WatchResponse {
    fn header(&self) -> Option<&Header> {
        self.header.as_ref()
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

    /// Accepts an answer only if the member belongs to this cluster.
    pub(crate) fn accept<A: Answer>(&self, answer: A, fleet: u64) -> Result<A, Fault> {
        match answer.cluster() {
            cluster if cluster == fleet => Ok(answer),
            cluster => Err(Fault::Stranger { member: self.member.clone(), cluster, fleet }),
        }
    }
}

/// How a client identifies itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Session {
    /// It has not logged in yet, or has to do it again.
    #[default]
    Closed,
    /// Authentication is off, so no request needs a token.
    NotNeeded,
    /// The token of its login.
    Open(MetadataValue<Ascii>),
}

impl Session {
    /// A request with the token of the login, if there is one.
    fn request<Q>(&self, message: Q) -> Request<Q> {
        let mut request = Request::new(message);
        if let Self::Open(token) = self {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }

    /// Whether this is etcd's way to say that a request needs a (new) login.
    fn has_ended(status: &Status) -> bool {
        let said = status.message();
        status.code() == Code::Unauthenticated
            || said.contains("auth store is old")
            // A request without a token, after authentication was enabled.
            || (status.code() == Code::InvalidArgument && said.contains("user name is empty"))
    }
}

pub(crate) struct Client {
    members: Vec<(Endpoint, Mutex<Connection>)>,
    /// The member that is asked first.
    pub(crate) current: AtomicUsize,
    /// The identifier of the fleet's cluster; 0 as long as the node does not know it. Answers of other clusters count as no
    /// answers.
    cluster: AtomicU64,
    user: Option<String>,
    /// The password, and another one, which is tried if etcd rejects the first.
    passwords: Vec<String>,
    session: Mutex<Session>,
    /// Held during a login, which costs etcd much: the requests that wait for it share its token.
    login: tokio::sync::Mutex<()>,
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
        let passwords = [&etcd.password, &etcd.other_password].into_iter().flatten().cloned().collect();
        Ok(Self {
            members,
            current: AtomicUsize::new(0),
            cluster: AtomicU64::new(0),
            user: etcd.user.clone(),
            passwords,
            session: Mutex::default(),
            login: tokio::sync::Mutex::default(),
            one_try,
        })
    }

    /// How many members there are, as the settings say.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// The identifier of the fleet's cluster; `None` as long as the node does not know it.
    pub(crate) fn cluster(&self) -> Option<u64> {
        Some(self.cluster.load(Ordering::Acquire)).filter(|cluster| *cluster != 0)
    }

    /// From now on only answers of this cluster count.
    pub(crate) fn belong_to(&self, cluster: u64) {
        self.cluster.store(cluster, Ordering::Release);
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
        A: Answer,
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
            let answer: Result<A, _> = match self.cluster() {
                None => Err(Fault::Unclear("the node does not know yet which cluster is the fleet's".into())),
                Some(fleet) => {
                    let answer = self.call(&connection, path, message.clone(), limit).await;
                    answer.and_then(|answer| connection.accept(answer, fleet))
                }
            };
            let fault = match answer {
                Err(fault @ (Fault::Unclear(_) | Fault::Stranger { .. } | Fault::Future)) => fault,
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
        let logs_in = self.user.is_some() && matches!(*lock(&self.session), Session::Closed);
        if logs_in { 5 * self.one_try } else { self.one_try }
    }

    /// One request to one member.
    async fn call<Q, A>(&self, to: &Connection, path: &'static str, message: Q, limit: Duration) -> Result<A, Fault>
    where
        Q: Message + Clone + 'static,
        A: Answer,
    {
        let calling = async {
            let session = self.session(to).await?;
            match once(to, path, session.request(message.clone())).await {
                // Etcd forgets the token of a login after some minutes, and when passwords or rights change. It needs one as
                // soon as authentication is enabled.
                Err(status) if self.user.is_some() && Session::has_ended(&status) => {
                    self.close(&session);
                    let session = self.session(to).await?;
                    once(to, path, session.request(message)).await
                }
                answer => answer,
            }
        };
        match timeout(limit, calling).await {
            Ok(answer) => answer.map_err(|status| Fault::of(&status, &to.member)),
            Err(_) => Err(Fault::Unclear(format!("{}: no answer within {limit:?}", to.member))),
        }
    }

    /// The session of the requests: a login, if authentication is on and there was none yet.
    async fn session(&self, to: &Connection) -> Result<Session, Status> {
        let Some(user) = &self.user else { return Ok(Session::NotNeeded) };
        let known = || Some(lock(&self.session).clone()).filter(|session| *session != Session::Closed);
        if let Some(session) = known() {
            return Ok(session);
        }
        let _login = self.login.lock().await;
        if let Some(session) = known() {
            return Ok(session);
        }
        let session = self.log_in(to, user).await?;
        lock(&self.session).clone_from(&session);
        Ok(session)
    }

    /// Etcd takes this session no longer. There may be a later one already.
    fn close(&self, ended: &Session) {
        let mut session = lock(&self.session);
        if *session == *ended {
            *session = Session::Closed;
        }
    }

    /// Logs in with the first password that etcd takes.
    async fn log_in(&self, to: &Connection, user: &str) -> Result<Session, Status> {
        let mut rejected = Status::unauthenticated("the user has no password");
        for password in &self.passwords {
            let login = AuthenticateRequest { name: user.to_owned(), password: password.clone() };
            match once(to, "/etcdserverpb.Auth/Authenticate", Request::new(login)).await {
                Ok(AuthenticateResponse { token }) => {
                    let token = token.parse().map_err(|_| Status::internal("the token is not a valid header"))?;
                    return Ok(Session::Open(token));
                }
                Err(status)
                    if status.code() == Code::FailedPrecondition && status.message().contains("not enabled") =>
                {
                    return Ok(Session::NotNeeded);
                }
                Err(status) if status.code() == Code::InvalidArgument => rejected = status,
                Err(status) => return Err(status),
            }
        }
        Err(rejected)
    }

    /// A transaction, by any member.
    pub(crate) async fn txn(&self, txn: &TxnRequest, until: Instant) -> Result<TxnResponse, Fault> {
        self.ask("/etcdserverpb.KV/Txn", txn, until).await.and_then(|answer| complete(txn, answer))
    }

    /// A transaction, over this connection, to a member of any cluster: the caller has to look at the answer's cluster.
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
            let (mut grpc, request) = (ready(to).await?, self.session(to).await?.request(create));
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
