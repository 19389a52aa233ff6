//! What the server adds to a filter's snapshot, and how it reads the file.
//!
//! The library writes the file. There is either the old file or the new one, also after a crash. With each filter the
//! server saves a few numbers of its own, as the snapshot's *attachment*. They say which store the filter belongs to.

use std::fmt;
use std::io::ErrorKind;

use concurrent_cuckoo_filter::LoadError;

/// Why a snapshot is unusable.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The file does not exist.
    Missing,
    /// The file can't be read or is damaged. Or it is of another kind of filter, of other keys or of another hash
    /// key.
    Filter(LoadError),
    /// The filter is intact, but does not fit this store or these options.
    Unfit(String),
}

impl From<LoadError> for Unusable {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Io(error) if error.kind() == ErrorKind::NotFound => Self::Missing,
            error => Self::Filter(error),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(f, "there is none"),
            Self::Filter(LoadError::Io(error)) => write!(f, "{error}"),
            Self::Filter(error) => write!(f, "{error}"),
            Self::Unfit(why) => write!(f, "{why}"),
        }
    }
}

/// Numbers as an attachment: eight bytes each, little-endian.
pub(crate) fn attachment(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// The numbers of an attachment, if it has exactly `N`.
pub(crate) fn numbers<const N: usize>(attachment: &[u8]) -> Option<[u64; N]> {
    match attachment.as_chunks() {
        (numbers, []) => Some(<[[u8; 8]; N]>::try_from(numbers).ok()?.map(u64::from_le_bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attachment_has_as_many_numbers_as_were_put_in() {
        let bytes = attachment(&[0x0123_4567_89ab_cdef, 42]);
        assert_eq!(numbers(&bytes), Some([0x0123_4567_89ab_cdef, 42]));
        assert_eq!(numbers::<1>(&bytes), None);
        assert_eq!(numbers::<3>(&bytes), None);
        assert_eq!(numbers::<1>(&bytes[..9]), None);
        assert_eq!(numbers::<1>(&[]), None);
    }
}
