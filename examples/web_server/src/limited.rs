//! A limit for each client, by the address from which it connects.

use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use concurrent_cuckoo_filter::{BuildError, CuckooRateLimiter};

use crate::Options;

/// Who shares a limit: an address of IPv4, or a network of IPv6 whose addresses have 64 bits in common. A customer has at
/// least one such network, and may send each request from another of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    V4(Ipv4Addr),
    V6(u64),
}

impl From<IpAddr> for Client {
    fn from(address: IpAddr) -> Self {
        // A listener for both versions shows 203.0.113.7 as ::ffff:203.0.113.7.
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// The limits of all clients, in memory only.
pub struct Clients {
    pub limiter: CuckooRateLimiter<Client>,
}

impl Clients {
    pub fn new(options: &Options) -> Result<Self, BuildError> {
        let minute = Duration::from_secs(60);
        let builder = CuckooRateLimiter::builder().allow(options.limit, minute).burst(options.burst);
        Ok(Self { limiter: builder.capacity(options.clients).build()? })
    }

    /// The answer to a client that may not make this request now, which says when it may try again. `None` if it may.
    ///
    /// Behind a proxy, all requests come from the proxy's address. Then take the one that *your* proxy has appended to
    /// `X-Forwarded-For`, and no other: the rest of that header comes from the client.
    pub fn rejection(&self, request: &Request) -> Option<Response> {
        let Some(ConnectInfo(address)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
            return Some((StatusCode::INTERNAL_SERVER_ERROR, "serve it with connect info").into_response());
        };
        let limited = self.limiter.check(&Client::from(address.ip())).err()?;
        let seconds = limited.retry_after().as_nanos().div_ceil(1_000_000_000) as u64;
        let mut response = (StatusCode::TOO_MANY_REQUESTS, "too many requests").into_response();
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        Some(response)
    }
}
