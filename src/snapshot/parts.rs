//! PURE: the constants of the format, shared by the writer and the reader.

use crate::word::layout::Encoding;

pub(crate) const MAGIC: [u8; 8] = *b"\x89CCF\r\n\x1a\n";

pub(crate) const VERSION: u16 = 4;

/// The most bytes of an attachment.
pub(crate) const MAX_ATTACHMENT: usize = 1 << 16;

pub(crate) fn encoding_number(encoding: Encoding) -> u8 {
    match encoding {
        Encoding::Plain => 0,
        Encoding::SemiSorted => 1,
    }
}

/// The number that means "none was asked for".
const ANY_ENCODING: u8 = 255;

/// The number for an encoding that was asked for, or for none.
pub(crate) fn wanted_number(encoding: Option<Encoding>) -> u8 {
    encoding.map_or(ANY_ENCODING, encoding_number)
}

/// The encoding that was asked for, or none. `None` if the number means neither.
pub(crate) fn wanted_of_number(number: u8) -> Option<Option<Encoding>> {
    [None, Some(Encoding::Plain), Some(Encoding::SemiSorted)].into_iter().find(|&one| wanted_number(one) == number)
}
