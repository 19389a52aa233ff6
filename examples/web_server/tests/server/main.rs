//! Runs the real server on a loopback port. Several clients drive it over HTTP, and it is ended, killed and started
//! again.
//!
//! - `revoking`: tokens one by one, with the filter and without;
//! - `expiry`: tokens that are revoked until they expire;
//! - `request_ids`: requests that come again;
//! - `clock`: a clock that goes back or jumps, and its effect on identifiers and revoked tokens;
//! - `bulk`: many tokens at a time, and a full filter;
//! - `restarts`: what is known after a restart, and after a hard kill;
//! - `snapshots`: snapshots that must not be used;
//! - `operation`: administrators, the metrics page, and errors in requests, arguments and files;
//! - `support`, `tokens`: what these share.
#![cfg(unix)] // For SIGTERM.

mod bulk;
mod clock;
mod expiry;
mod operation;
mod request_ids;
mod restarts;
mod revoking;
mod snapshots;
mod support;
mod tokens;
