//! What the two services that refuse revoked tokens share: `web_server` and `fleet`.
//!
//! - [`token`]: what a token may look like, where a request carries it, and who is an administrator;
//! - [`expiry`]: until when a token is refused;
//! - [`answers`]: answers other than success;
//! - [`figures`]: the figures of a filter for Prometheus;
//! - [`signal`]: the signals that end a service.

pub mod answers;
pub mod expiry;
pub mod figures;
pub mod signal;
pub mod token;
