//! The secret key of the filters' hash, which all nodes of a fleet share.
//!
//! It must be secret; otherwise anyone who chooses tokens can choose ones that collide. It must be the same on all
//! nodes, because the hashes in the log mean the same only under one key. A node with another key does not start.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use tempfile::NamedTempFile;

const BYTES: usize = 16;

/// A new key.
pub(crate) fn random() -> Result<u128, String> {
    let mut key = [0; BYTES];
    getrandom::fill(&mut key).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(u128::from_be_bytes(key))
}

/// A key in hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Result<[u8; BYTES], String> {
    let is_hex = text.len() == 2 * BYTES && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let key = u128::from_str_radix(text, 16).ok().filter(|_| is_hex);
    key.map(u128::to_be_bytes)
        .ok_or_else(|| format!("give {} hexadecimal digits; this has {} characters", 2 * BYTES, text.chars().count()))
}

/// Reads the key, or makes one if the file does not exist. Nodes that do so at the same time get the same key.
pub(crate) fn read_or_create(path: &Path) -> Result<[u8; BYTES], String> {
    let failed = |verb: &str, error: io::Error| format!("can't {verb} {}: {error}", path.display());
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create(path).map_err(|error| failed("create", error))?;
            fs::read(path).map_err(|error| failed("read", error))?
        }
        read => read.map_err(|error| failed("read", error))?,
    };
    <[u8; BYTES]>::try_from(bytes.as_slice()).map_err(|_| {
        let (path, len) = (path.display(), bytes.len());
        format!("{path} has {len} bytes, and a key has {BYTES}; copy the file of another node, or give a new path")
    })
}

fn create(path: &Path) -> io::Result<()> {
    let key = random().map_err(io::Error::other)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Under another name first, so that no node reads half a key. Only its owner can read such a file.
    let mut whole = NamedTempFile::new_in(folder)?;
    whole.write_all(&key.to_be_bytes())?;
    match whole.persist_noclobber(path) {
        Ok(_) => {
            eprintln!("key: a new one in {}; all nodes of the fleet need the same", path.display());
            Ok(())
        }
        // Another node was faster.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_read_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fleet.key");
        let key = read_or_create(&path).unwrap();
        create(&path).unwrap();
        assert_eq!(read_or_create(&path), Ok(key), "one that was there is not replaced");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(&path, [1; 15]).unwrap();
        assert!(read_or_create(&path).unwrap_err().contains("15 bytes"));
    }

    #[test]
    fn a_key_in_digits_has_all_of_them() {
        let key: [u8; BYTES] = std::array::from_fn(|i| i as u8);
        assert_eq!(from_hex("000102030405060708090a0b0c0D0E0F"), Ok(key));
        for text in ["", "00", "000102030405060708090a0b0c0d0e0g", "+00102030405060708090a0b0c0d0e0f"] {
            assert!(from_hex(text).is_err_and(|error| error.contains("32")), "{text}");
        }
    }
}
