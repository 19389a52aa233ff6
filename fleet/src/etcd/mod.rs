//! A client of etcd: the calls that a node needs.
//!
//! A [`Link`] is a connection to one member. A [`Client`] sends single requests, which must be idempotent, to one member
//! after the other until one has answered. An answer of another cluster than the fleet's counts as none. A call that has no
//! result, so that its outcome is unknown, gives a [`Status`], whose message says why.

#[expect(unreachable_pub, reason = "it is generated")]
pub(crate) mod messages;
mod requests;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use self::messages::{
    AuthenticateRequest, AuthenticateResponse, Header, LeaseGrantRequest, LeaseGrantResponse, TxnRequest, TxnResponse,
    WatchCreateRequest, WatchRequest, WatchResponse,
};
pub(crate) use self::requests::{after, greater, keys, put, range, range_of, same, sub_txn, txn};

const TXN: &str = "/etcdserverpb.KV/Txn";

/// To check a password takes etcd some tenths of a second of processor time.
const LOGIN: Duration = Duration::from_secs(5);

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
    /// Members at these addresses, separated by commas, without a login.
    pub fn new(members: &str) -> Self {
        Self { members: members.split(',').map(str::to_owned).collect(), ..Self::default() }
    }

    fn endpoints(&self, connect: Duration) -> Result<Vec<Endpoint>, String> {
        let read =
            |path: &PathBuf| std::fs::read(path).map_err(|error| format!("can't read {}: {error}", path.display()));
        let mut tls = match &self.authority {
            Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path)?)),
            None => ClientTlsConfig::new().with_native_roots(),
        };
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        let endpoint = |url: &String| {
            let wrong = |why: &dyn fmt::Display| {
                format!("{url:?} is not an address of etcd: {why}; give http://HOST:PORT or https://HOST:PORT")
            };
            let endpoint = Endpoint::from_shared(url.trim().to_owned()).map_err(|error| wrong(&error))?;
            let endpoint = match endpoint.uri().scheme_str() {
                Some("http") => endpoint,
                Some("https") => endpoint.tls_config(tls.clone()).map_err(|error| wrong(&error))?,
                _ => return Err(wrong(&"it has no such scheme")),
            };
            // Etcd closes connections that ask for signs of life more often than every 5 seconds.
            let endpoint = endpoint.connect_timeout(connect).tcp_nodelay(true).keep_alive_while_idle(true);
            Ok(endpoint.http2_keep_alive_interval(Duration::from_secs(6)).keep_alive_timeout(Duration::from_secs(4)))
        };
        let endpoints: Vec<_> = self.members.iter().map(endpoint).collect::<Result<_, _>>()?;
        if endpoints.is_empty() {
            return Err("there is no address of etcd; give http://HOST:PORT or https://HOST:PORT of each member".into());
        }
        Ok(endpoints)
    }
}

/// Leaves out the password.
impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("members", &self.members).finish_non_exhaustive()
    }
}

/// The lease is gone: it was revoked, or a backup was restored. Nothing was changed.
pub(crate) fn is_lost_lease(fault: &Status) -> bool {
    fault.code() == Code::NotFound
}

/// Whether all members will say so: the lease is gone, there is no space, or the user may not do it.
fn is_final(fault: &Status) -> bool {
    matches!(fault.code(), Code::NotFound | Code::ResourceExhausted | Code::PermissionDenied)
}

/// A connection to one member. It logs in once: a link whose login etcd does not accept any more is given up, like one
/// that is broken.
pub(crate) struct Link {
    pub(crate) member: String,
    channel: Channel,
    login: Option<AuthenticateRequest>,
    /// The token of the login; `None` if authentication is off.
    token: OnceCell<Option<MetadataValue<Ascii>>>,
}

impl Link {
    fn to(endpoint: &Endpoint, login: Option<AuthenticateRequest>) -> Self {
        let token = OnceCell::new();
        Self { member: endpoint.uri().to_string(), channel: endpoint.connect_lazy(), login, token }
    }

    pub(crate) async fn txn(&self, txn: TxnRequest, limit: Duration) -> Result<TxnResponse, Status> {
        self.call(TXN, txn, limit).await
    }

    /// Everything that happens to these keys from this revision on.
    pub(crate) async fn watch(
        &self,
        create: WatchCreateRequest,
        limit: Duration,
    ) -> Result<Streaming<WatchResponse>, Status> {
        // The stream of requests stays open; etcd would end the watch with it.
        let create = tokio_stream::once(WatchRequest { create: Some(create) }).chain(tokio_stream::pending());
        let request = self.logged_in(Request::new(create)).await?;
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        self.within(limit, async { self.grpc().await?.streaming(request, path, codec).await }).await
    }

    async fn call<Q, A>(&self, path: &'static str, message: Q, limit: Duration) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let request = self.logged_in(Request::new(message)).await?;
        self.once(path, request, limit).await
    }

    async fn once<Q, A>(&self, path: &'static str, request: Request<Q>, limit: Duration) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let (path, codec) = (PathAndQuery::from_static(path), ProstCodec::<Q, A>::default());
        self.within(limit, async { self.grpc().await?.unary(request, path, codec).await }).await
    }

    async fn grpc(&self) -> Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        Ok(grpc)
    }

    /// The result of a call. A fault names the member and its causes. (What tonic says is only "transport error".)
    async fn within<A>(
        &self,
        limit: Duration,
        calling: impl Future<Output = Result<tonic::Response<A>, Status>>,
    ) -> Result<A, Status> {
        let fault = match timeout(limit, calling).await {
            Ok(Ok(answer)) => return Ok(answer.into_inner()),
            Ok(Err(fault)) => fault,
            Err(_) => Status::deadline_exceeded(format!("no answer within {limit:?}")),
        };
        let mut why = format!("{}: {} ({:?})", self.member, fault.message(), fault.code());
        let mut source = std::error::Error::source(&fault);
        while let Some(error) = source {
            why = format!("{why}: {error}");
            source = error.source();
        }
        Err(Status::new(fault.code(), why))
    }

    /// The request, with the token of the login if there is one.
    async fn logged_in<Q>(&self, mut request: Request<Q>) -> Result<Request<Q>, Status> {
        if let Some(login) = &self.login
            && let Some(token) = self.token.get_or_try_init(|| self.log_in(login.clone())).await?
        {
            request.metadata_mut().insert("token", token.clone());
        }
        Ok(request)
    }

    async fn log_in(&self, login: AuthenticateRequest) -> Result<Option<MetadataValue<Ascii>>, Status> {
        match self.once("/etcdserverpb.Auth/Authenticate", Request::new(login), LOGIN).await {
            Ok(AuthenticateResponse { token }) => {
                token.parse().map(Some).map_err(|_| Status::internal("the token is not a valid header"))
            }
            // Authentication is off.
            Err(status) if status.code() == Code::FailedPrecondition => Ok(None),
            Err(status) => Err(status),
        }
    }
}

/// All members.
pub(crate) struct Client {
    members: Vec<Endpoint>,
    login: Option<AuthenticateRequest>,
    /// The link of single requests, and how many there were before.
    current: Mutex<(usize, Arc<Link>)>,
    next: AtomicUsize,
    /// The fleet's cluster; 0 as long as the node does not know it.
    cluster: AtomicU64,
    /// How long one member may take at first.
    pub(crate) one_try: Duration,
}

impl Client {
    /// Connects when it is needed.
    pub(crate) fn new(etcd: &Etcd, one_try: Duration) -> Result<Self, String> {
        let members = etcd.endpoints(one_try)?;
        let login = etcd.user.clone().zip(etcd.password.clone());
        let login = login.map(|(name, password)| AuthenticateRequest { name, password });
        let first = Arc::new(Link::to(&members[0], login.clone()));
        let (current, next, cluster) = (Mutex::new((0, first)), AtomicUsize::new(0), AtomicU64::new(0));
        Ok(Self { members, login, current, next, cluster, one_try })
    }

    /// A new link, to the next member.
    pub(crate) fn next(&self) -> Link {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        Link::to(&self.members[next % self.members.len()], self.login.clone())
    }

    /// A link to each member.
    pub(crate) fn each(&self) -> Vec<Link> {
        self.members.iter().map(|member| Link::to(member, self.login.clone())).collect()
    }

    /// From now on only answers of this cluster count.
    pub(crate) fn belong_to(&self, cluster: u64) {
        self.cluster.store(cluster, Ordering::Relaxed);
    }

    pub(crate) async fn txn(&self, txn: &TxnRequest, until: Instant) -> Result<TxnResponse, Status> {
        self.ask(TXN, txn, until, |answer: &TxnResponse| answer.header).await
    }

    /// A lease of this many seconds.
    pub(crate) async fn lease(&self, ttl: u64, until: Instant) -> Result<i64, Status> {
        let grant = LeaseGrantRequest { ttl: ttl as i64 };
        let header = |lease: &LeaseGrantResponse| lease.header;
        self.ask("/etcdserverpb.Lease/LeaseGrant", &grant, until, header).await.map(|lease| lease.id)
    }

    /// The same request to one member after the other, until one of the fleet's cluster has answered.
    async fn ask<Q, A>(
        &self,
        path: &'static str,
        message: &Q,
        until: Instant,
        header: impl Fn(&A) -> Option<Header>,
    ) -> Result<A, Status>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        // A member that is busy gets more time, and is not asked more often.
        let (mut limit, mut pause) = (self.one_try, Duration::from_millis(20));
        loop {
            let (nth, link) = self.current.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let rest = until.saturating_duration_since(Instant::now());
            let answer = link.call(path, message.clone(), limit.min(rest)).await;
            let fault = match answer.and_then(|answer| self.is_ours(header(&answer), &link).map(|()| answer)) {
                Err(fault) if !is_final(&fault) => fault,
                answer => return answer,
            };
            self.give_up(nth);
            if Instant::now() + pause >= until {
                return Err(fault);
            }
            sleep(pause).await;
            (limit, pause) = (2 * limit, (2 * pause).min(Duration::from_millis(320)));
        }
    }

    fn is_ours(&self, header: Option<Header>, link: &Link) -> Result<(), Status> {
        let (fleet, here) = (self.cluster.load(Ordering::Relaxed), header.map_or(0, |of| of.cluster_id));
        if fleet == 0 || here == fleet {
            return Ok(());
        }
        Err(Status::unavailable(format!(
            "{} is a member of cluster {here:x}, and the fleet is in cluster {fleet:x}",
            link.member
        )))
    }

    /// Only one of the requests that had a fault takes the next member.
    fn give_up(&self, nth: usize) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 == nth {
            *current = (nth + 1, Arc::new(self.next()));
        }
    }
}
