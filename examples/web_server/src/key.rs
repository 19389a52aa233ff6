//! The secret key of the filters' hash.
//!
//! It must be secret. Otherwise anyone who chooses tokens and identifiers could choose ones that collide. It must
//! also be the same after a restart, or the snapshots are useless. So it is random, and is kept in a file that only
//! its owner can read.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use example_support::secret_file;

use crate::failure::Failure;

const BYTES: usize = 16;

/// Reads the key. Makes one if there is no such file.
pub(crate) fn read_or_create(path: &Path) -> Result<[u8; BYTES], Failure> {
    match fs::read(path) {
        Ok(bytes) => {
            secret_file::warn_if_others_can_read(path);
            <[u8; BYTES]>::try_from(bytes.as_slice()).map_err(|_| {
                Failure::Key(format!(
                    "{} has {} bytes, and a key has {BYTES}; delete it to have a new one made: the filters are then \
                     rebuilt from the store, and the request identifiers seen so far are forgotten",
                    path.display(),
                    bytes.len()
                ))
            })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => create(path),
        Err(error) => Err(Failure::file("read", path, error)),
    }
}

fn create(path: &Path) -> Result<[u8; BYTES], Failure> {
    let mut key = [0; BYTES];
    getrandom::fill(&mut key).map_err(|error| Failure::Key(format!("the system gives no random bytes: {error}")))?;
    secret_file::write(path, &key, OpenOptions::new().create_new(true))
        .map_err(|error| Failure::file("create", path, error))?;
    eprintln!("key: made a new one in {}", path.display());
    Ok(key)
}
