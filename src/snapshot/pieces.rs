//! A snapshot as pieces of bytes, one after the other, in the format of `docs/snapshot_format.md`.

use std::borrow::Cow;
use std::io;

use crate::error::kind::FilterKind;
use crate::plan::sizing::LoadLimit;
use crate::snapshot::format::KindHeader;
use crate::snapshot::parts::{MAGIC, VERSION, encoding_number};
use crate::sync::sizes::CHUNK;
use crate::table::image::read::TableImage;
use crate::word::layout::Shape;

/// The most bytes of a piece. A chunk of words fits, and (in models, whose chunks are small) a header.
pub(crate) const PIECE: usize = if CHUNK * size_of::<u64>() > 512 { CHUNK * size_of::<u64>() } else { 512 };

/// The bytes of a snapshot without its schema, its attachment, its kind's header and its words.
const FIXED: u64 = 68;

/// The bytes of a checksum.
const CHECKSUM: u64 = 4;

/// What the header declares.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) kind: FilterKind,
    pub(crate) probe: u64,
    pub(crate) schema: Cow<'a, str>,
    pub(crate) position: Option<u64>,
    pub(crate) attachment: Vec<u8>,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Header,
    /// The attachment from this byte on.
    Attachment(usize),
    /// The checksum of the attachment, the kind's header, and the table's header.
    Section,
    /// The words from this bucket on, and the number of copies before them.
    Words(usize, u64),
    /// The number of copies in all words.
    End(u64),
    Nothing,
}

/// The remaining pieces of a snapshot.
pub(crate) struct Pieces<'a> {
    header: Header<'a>,
    kind_header: KindHeader,
    /// `None` when all words are read: the memory that the save holds is free then.
    image: Option<TableImage<'a>>,
    shape: Shape,
    buckets: usize,
    limit: LoadLimit,
    sum: crc32fast::Hasher,
    stage: Stage,
}

/// A piece under construction.
struct Piece<'a> {
    buffer: &'a mut [u8; PIECE],
    len: usize,
    sum: &'a mut crc32fast::Hasher,
}

impl Piece<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.sum.update(bytes);
        self.append(bytes);
    }

    fn put_checksum(&mut self) {
        let sum = self.sum.clone().finalize();
        self.append(&sum.to_le_bytes());
    }

    fn append(&mut self, bytes: &[u8]) {
        self.buffer[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }
}

impl<'a> Pieces<'a> {
    /// All of a snapshot. The schema and the attachment must not be longer than the format allows.
    pub(crate) fn new(header: Header<'a>, kind_header: KindHeader, image: TableImage<'a>) -> Self {
        let ((shape, buckets), limit) = (image.layout(), image.limit());
        let (sum, stage) = (crc32fast::Hasher::new(), Stage::Header);
        Self { header, kind_header, image: Some(image), shape, buckets, limit, sum, stage }
    }

    /// How many bytes the snapshot has.
    pub(crate) fn len_of(header: &Header<'_>, kind_header: &KindHeader, image: &TableImage<'_>) -> u64 {
        let kind_header = kind_header.bytes().len() as u64;
        FIXED
            + header.schema.len() as u64
            + header.attachment.len() as u64
            + if kind_header > 0 { kind_header + CHECKSUM } else { 0 }
            + image.layout().1 as u64 * size_of::<u64>() as u64
    }

    /// Puts the next piece into the buffer. Returns how many bytes it has: 0 at the end.
    ///
    /// # Errors
    /// Of the kind `OutOfMemory` if the memory for an old word could not be allocated.
    pub(crate) fn next(&mut self, buffer: &mut [u8; PIECE]) -> io::Result<usize> {
        let Header { kind, probe, schema, position, attachment } = &self.header;
        let mut piece = Piece { buffer, len: 0, sum: &mut self.sum };
        self.stage = match self.stage {
            Stage::Header => {
                piece.put(&MAGIC);
                piece.put(&VERSION.to_le_bytes());
                piece.put(&[kind.number()]);
                piece.put(&probe.to_le_bytes());
                piece.put(&[schema.len() as u8]);
                piece.put(schema.as_bytes());
                piece.put(&[u8::from(position.is_some())]);
                piece.put(&position.unwrap_or(0).to_le_bytes());
                piece.put(&(attachment.len() as u32).to_le_bytes());
                piece.put_checksum();
                if attachment.is_empty() { Stage::Section } else { Stage::Attachment(0) }
            }
            Stage::Attachment(from) => {
                let to = attachment.len().min(from + PIECE);
                piece.put(&attachment[from..to]);
                if to == attachment.len() { Stage::Section } else { Stage::Attachment(to) }
            }
            Stage::Section => {
                piece.put_checksum();
                if !self.kind_header.bytes().is_empty() {
                    piece.put(self.kind_header.bytes());
                    piece.put_checksum();
                }
                let Shape { encoding, slots, fingerprint_bits, payload_bits: _ } = self.shape;
                piece.put(&[encoding_number(encoding) | self.limit.number() << 1, slots as u8, fingerprint_bits as u8]);
                piece.put(&(self.buckets as u64).to_le_bytes());
                piece.put_checksum();
                Stage::Words(0, 0)
            }
            Stage::Words(start, copies) => {
                let mut words = [0; CHUNK];
                let words = &mut words[..CHUNK.min(self.buckets - start)];
                let image = self.image.as_ref().expect("there are words to read");
                let copies = copies + image.read_chunk(start, words)?;
                for (bytes, word) in piece.buffer.chunks_exact_mut(size_of::<u64>()).zip(&*words) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                piece.len = size_of_val(words);
                piece.sum.update(&piece.buffer[..piece.len]);
                let next = start + words.len();
                if next == self.buckets {
                    self.image = None;
                    Stage::End(copies)
                } else {
                    Stage::Words(next, copies)
                }
            }
            Stage::End(copies) => {
                piece.put(&copies.to_le_bytes());
                piece.put_checksum();
                Stage::Nothing
            }
            Stage::Nothing => Stage::Nothing,
        };
        Ok(piece.len)
    }
}
