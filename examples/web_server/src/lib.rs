//! A tower layer that refuses revoked tokens and repeated requests ([`layer`]), and a server around it.
#![allow(missing_debug_implementations, missing_docs, reason = "the library is for the tests of the program")]

pub mod figures;
pub mod layer;
pub mod options;
pub mod revoked;
pub mod seen;
pub mod server;
