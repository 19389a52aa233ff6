//! PURE: the constants of the format, which those who write and those who read share.

use crate::word::layout::Encoding;

pub(crate) const MAGIC: [u8; 8] = *b"\x89CCF\r\n\x1a\n";

pub(crate) const VERSION: u16 = 3;

/// The most bytes of an attachment.
pub(crate) const MAX_ATTACHMENT: usize = 1 << 16;

pub(crate) fn encoding_number(encoding: Encoding) -> u8 {
    match encoding {
        Encoding::Plain => 0,
        Encoding::SemiSorted => 1,
    }
}

/// The number that stands for "none was asked for".
const ANY_ENCODING: u8 = 255;

/// An encoding that was asked for, as a number.
pub(crate) fn wanted_number(encoding: Option<Encoding>) -> u8 {
    encoding.map_or(ANY_ENCODING, encoding_number)
}

/// The encoding that was asked for, if the number stands for one or for none.
pub(crate) fn wanted_of_number(number: u8) -> Option<Option<Encoding>> {
    [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)].into_iter().find(|&one| wanted_number(one) == number)
}
