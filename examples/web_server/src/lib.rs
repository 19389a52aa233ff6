//! A tower layer that refuses revoked tokens and repeated requests, and a server around it.
//!
//! - [`layer`]: the layer, which works alone in any server of tower services;
//! - [`revoked`]: the revoked tokens, in a filter in front of a store on disk;
//! - [`seen`]: the identifiers of requests, in a filter;
//! - [`server`]: the routes;
//! - [`options`]: the command line.

#![allow(missing_debug_implementations, reason = "the clock is a closure")]

pub mod layer;
pub mod options;
pub mod revoked;
pub mod seen;
pub mod server;
