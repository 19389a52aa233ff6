//! What the two services that refuse revoked tokens share: `web_server` and `fleet`.
//!
//! - [`token`]: what a token may look like, where it is in a request, and who is an administrator;
//! - [`expiry`]: until when a token is to be refused;
//! - [`answers`]: answers other than success;
//! - [`signal`]: by what a service ends.

pub mod answers;
pub mod expiry;
pub mod signal;
pub mod token;
