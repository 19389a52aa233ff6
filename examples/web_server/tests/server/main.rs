//! The real server, on a loopback port, driven over HTTP by several clients, ended, killed and started again.
//!
//! - `revoking`: tokens one by one, with the filter and without;
//! - `expiry`: tokens that are revoked until they expire;
//! - `request_ids`: requests that come again;
//! - `clock`: a clock that goes back or jumps, and what the identifiers and the revoked tokens are then;
//! - `bulk`: many tokens at a time, and a filter that is full;
//! - `restarts`: what is known after a restart, and after a hard kill;
//! - `snapshots`: snapshots that must not be used;
//! - `operation`: administrators, the metrics page, and what is wrong with requests, arguments and files;
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
