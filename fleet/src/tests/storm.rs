//! A storm.
