//! CONCURRENT: connections to the engine. Each has time limits, so a connection that goes dead without being closed
//! is noticed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::{Client, Connection, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, ServerErrorKind};

use crate::log::EngineError;

/// How many unused connections are kept.
const IDLE: usize = 16;

/// Connections that are opened as they are needed, and kept for the next call.
pub(super) struct Connections {
    client: Client,
    timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl Connections {
    pub(super) fn new(url: &str, timeout: Duration) -> Result<Self, EngineError> {
        let invalid = |error| EngineError::Refused(format!("{url:?} is not the address of a Redis server: {error}"));
        let info = url.into_connection_info().map_err(invalid)?;
        // The client sends nothing first: a connection is ready when it is open.
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true)).set_redis_settings(settings);
        let client = Client::open(info).map_err(invalid)?;
        Ok(Self { client, timeout, idle: Mutex::default() })
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A new connection.
    pub(super) fn connect(&self) -> Result<Connection, EngineError> {
        let connect = || {
            let connection = self.client.get_connection_with_timeout(self.timeout)?;
            connection.set_read_timeout(Some(self.timeout))?;
            connection.set_write_timeout(Some(self.timeout))?;
            Ok(connection)
        };
        connect().map_err(|error| self.engine_error(&error))
    }

    /// Asks the engine on some connection. The question may be sent twice: a kept connection may have been closed
    /// meanwhile, and then the question is sent again on a new one.
    pub(super) fn ask<T>(&self, mut ask: impl FnMut(&mut Connection) -> RedisResult<T>) -> Result<T, EngineError> {
        // On a line of its own: the lock must be free while the engine is asked.
        let kept = self.idle().pop();
        if let Some(mut connection) = kept {
            match self.settle(ask(&mut connection), connection) {
                Err(error) if error.is_connection_dropped() => {}
                answered => return answered.map_err(|error| self.engine_error(&error)),
            }
        }
        let mut connection = self.connect()?;
        self.settle(ask(&mut connection), connection).map_err(|error| self.engine_error(&error))
    }

    /// Keeps a connection that still works.
    fn settle<T>(&self, answered: RedisResult<T>, connection: Connection) -> RedisResult<T> {
        let mut idle = self.idle();
        match &answered {
            Err(error) if is_broken(error) => idle.clear(), // The others will be no better.
            _ if idle.len() < IDLE => idle.push(connection),
            _ => {}
        }
        answered
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn engine_error(&self, error: &RedisError) -> EngineError {
        meaning(error, self.timeout)
    }
}

/// Whether the connection can't be used any more: the next answer on it may belong to another question.
fn is_broken(error: &RedisError) -> bool {
    !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType)
}

/// What an error of the client means for a node.
fn meaning(error: &RedisError, timeout: Duration) -> EngineError {
    let said = match error.kind() {
        _ if error.is_timeout() => format!("no answer within {timeout:?}"),
        _ => error.to_string(),
    };
    match error.kind() {
        ErrorKind::Io => EngineError::Unreachable(said),
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::MasterDown
            | ServerErrorKind::ReadOnly
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown,
        ) => EngineError::Unreachable(said),
        ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
            EngineError::Damaged(format!("the engine's answer is not as expected: {said}"))
        }
        // A script that runs for too long, a disk that is full, too few replicas, a machine that has become a
        // replica. These conditions pass.
        _ if error.code().is_some_and(|code| ["BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED"].contains(&code)) => {
            EngineError::Unreachable(said)
        }
        _ => EngineError::Refused(said),
    }
}
