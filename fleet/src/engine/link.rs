//! CONCURRENT: a connection to the engine's master, shared by all requests, and replaced when it fails.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    Client, Cmd, ConnectionAddr, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError, RedisResult,
    ScriptInvocation, ServerErrorKind, TlsMode,
};

use crate::log::EngineError;

/// A question to the engine.
pub(super) enum Question<'a> {
    Command(&'a Cmd),
    Script(&'a ScriptInvocation<'a>),
}

impl Question<'_> {
    async fn ask<T: FromRedisValue>(&self, connection: &mut ConnectionManager) -> RedisResult<T> {
        match self {
            Self::Command(command) => command.query_async(connection).await,
            Self::Script(call) => call.invoke_async(connection).await,
        }
    }
}

pub(super) struct Link {
    source: Source,
    config: ConnectionManagerConfig,
    timeout: Duration,
    /// The connection in use, and its number.
    current: Mutex<(u64, Option<ConnectionManager>)>,
}

enum Source {
    Address(Box<Client>),
    /// Asked for the master's address each time that a connection is needed.
    Sentinel(Box<tokio::sync::Mutex<SentinelClient>>),
}

impl Link {
    /// Does not connect yet. `timeout` is that of connecting, `answer` that of an answer.
    pub(super) fn new(url: &str, timeout: Duration, answer: Duration) -> Result<Self, EngineError> {
        let source = source(url).map_err(|error| {
            // Without the address, which may have a password in it.
            EngineError::Refused(format!("the engine's URL is not the address of a Redis server: {error}"))
        })?;
        let config = ConnectionManagerConfig::new()
            .set_number_of_retries(1)
            .set_min_delay(Duration::from_millis(10))
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(answer));
        Ok(Self { source, config, timeout: answer, current: Mutex::default() })
    }

    /// Asks the engine. The question is sent once more if the connection turns out to be closed: the engine may have
    /// been restarted since it was used.
    ///
    /// A question that comes in the very moment in which the client gives a closed connection up may wait for its time
    /// limit: the channel to the connection's task can keep it unread (tokio issue 7714).
    pub(super) async fn ask<T: FromRedisValue>(&self, question: Question<'_>) -> Result<T, EngineError> {
        let mut is_first = true;
        loop {
            let asked = async {
                let (number, mut connection) = self.connection().await.map_err(|error| (0, error))?;
                question.ask(&mut connection).await.map_err(|error| (number, error))
            };
            // Connecting, to a Sentinel too, has a time limit as well.
            let asked = tokio::time::timeout(self.timeout * 2, asked).await;
            let Ok(asked) = asked else { return Err(EngineError::Unreachable(self.too_long())) };
            match asked {
                Ok(answer) => return Ok(answer),
                Err((number, error)) => {
                    self.note(number, &error);
                    if !(is_first && error.is_connection_dropped()) {
                        return Err(self.meaning(&error));
                    }
                    is_first = false;
                }
            }
        }
    }

    async fn connection(&self) -> RedisResult<(u64, ConnectionManager)> {
        if let (number, Some(connection)) = &*self.lock() {
            return Ok((*number, connection.clone()));
        }
        let client = match &self.source {
            Source::Address(client) => Client::clone(client),
            Source::Sentinel(sentinel) => sentinel.lock().await.async_get_client().await?,
        };
        let mut current = self.lock();
        // Another request may have been faster.
        if current.1.is_none() {
            let connection = ConnectionManager::new_lazy_with_config(client, self.config.clone())?;
            *current = (current.0 + 1, Some(connection));
        }
        Ok((current.0, current.1.clone().ok_or((ErrorKind::Client, "no connection"))?))
    }

    /// Drops a connection that may never answer again, may have lost the order of its answers, or leads to a replica. The
    /// manager itself replaces only those that are closed.
    fn note(&self, number: u64, error: &RedisError) {
        let is_over =
            !matches!(self.meaning(error), EngineError::Refused(_)) || error.kind() == ErrorKind::AuthenticationFailed;
        let mut current = self.lock();
        if is_over && current.0 == number {
            current.1 = None;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (u64, Option<ConnectionManager>)> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn too_long(&self) -> String {
        format!("no answer within {:?}", self.timeout)
    }

    /// What an error of the client means for a node.
    pub(super) fn meaning(&self, error: &RedisError) -> EngineError {
        let said = if error.is_timeout() { self.too_long() } else { error.to_string() };
        let code = error.code().unwrap_or_default();
        let remedy = "in FLEET_ENGINE_URL, as redis://:PASSWORD@HOST:PORT or redis://USER:PASSWORD@HOST:PORT";
        // The engine refuses long questions of a stranger before it says that he is one.
        if code == "NOAUTH" || said.contains("NOAUTH") || said.contains("unauthenticated") {
            return EngineError::Refused(format!("it wants a password, and this node has none; give it {remedy}"));
        }
        if code == "WRONGPASS" || error.kind() == ErrorKind::AuthenticationFailed {
            return EngineError::Refused(format!("the user or the password is wrong; give the right one {remedy}"));
        }
        match error.kind() {
            ErrorKind::Io | ErrorKind::MasterNameNotFoundBySentinel => EngineError::Unreachable(said),
            ErrorKind::Server(ServerErrorKind::ReadOnly) => EngineError::Unreachable(format!(
                "it is a replica, and only a master can say what the log has ({said}); the engine's URL must lead to \
                 the master"
            )),
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown,
            ) => EngineError::Unreachable(said),
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
                EngineError::Damaged(format!("the engine's answer is not as expected: {said}"))
            }
            // A script that runs for too long, a disk that is full, too few replicas, a machine that has become a
            // replica. These conditions pass.
            _ if ["BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED"].contains(&code) => EngineError::Unreachable(said),
            _ => EngineError::Refused(said),
        }
    }
}

fn source(url: &str) -> RedisResult<Source> {
    // The client sends nothing first: a connection is ready when it is open.
    let client = |url: &str| {
        let info = url.into_connection_info()?;
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        Client::open(info.set_tcp_settings(tcp).set_redis_settings(settings))
    };
    let Some((scheme, rest)) = url.split_once("+sentinel://") else {
        return client(url).map(|client| Source::Address(Box::new(client)));
    };
    let (rest, master) = rest.split_once('/').ok_or((ErrorKind::InvalidClientConfig, "there is no /MASTER"))?;
    let (login, hosts) = rest.rsplit_once('@').map_or((None, rest), |(login, hosts)| (Some(login), hosts));
    let mut addresses = Vec::new();
    for host in hosts.split(',') {
        let info = format!("redis://{host}").into_connection_info()?;
        let address = match (info.addr(), scheme) {
            (ConnectionAddr::Tcp(host, port), "rediss") => {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            }
            (address, _) => address.clone(),
        };
        addresses.push(address);
    }
    let mut builder = SentinelClientBuilder::new(addresses, master, SentinelServerType::Master)?;
    if scheme == "rediss" {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    if let Some(login) = login {
        let (user, password) = login.split_once(':').unwrap_or(("", login));
        if !user.is_empty() {
            builder = builder.set_client_to_redis_username(user);
        }
        builder = builder.set_client_to_redis_password(password);
    }
    Ok(Source::Sentinel(Box::new(tokio::sync::Mutex::new(builder.build()?))))
}
