//! A failed allocation that leaves the filter as it is.

use core::error::Error;
use std::io;

use crate::error::message::messages;

/// The memory for a point-in-time view of a filter could not be allocated, so the filter could not be saved or digested. The
/// filter is unchanged and usable.
///
/// A view needs some memory at its beginning, and 32 bytes for each bucket that other threads change while it is
/// read. In a function that returns an [`io::Error`], `?` converts it to one of the kind
/// [`OutOfMemory`](io::ErrorKind::OutOfMemory).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutOfMemory {}

impl OutOfMemory {
    pub(crate) fn new() -> Self {
        Self {}
    }
}

messages! {
    OutOfMemory:
    Self {} =>
        "the old contents of buckets that change while the filter is saved or digested could not be kept, because an \
         allocation failed; try again with more memory, with fewer changes, or with a faster writer of the save";
}

impl Error for OutOfMemory {}

impl From<OutOfMemory> for io::Error {
    fn from(error: OutOfMemory) -> Self {
        Self::new(io::ErrorKind::OutOfMemory, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a save is not a second link of the chain: its message would appear twice in a log of all sources.
    #[test]
    fn as_an_error_of_input_and_output_it_has_the_same_message_and_no_source() {
        let error = io::Error::from(OutOfMemory::new());
        assert_eq!(error.to_string(), OutOfMemory::new().to_string());
        assert!(error.source().is_none());
    }
}
