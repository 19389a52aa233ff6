//! PURE: writing a snapshot, in the format of `snapshot/format.rs`.

use std::io::{self, Write};

use crate::error::kind::FilterKind;
use crate::snapshot::format::Head;
use crate::snapshot::parts::{MAGIC, VERSION, encoding_number};
use crate::table::image::absorb::Image;
use crate::table::image::images::TableImage;
use crate::table::image::save::CHUNK;
use crate::word::layout::Shape;

/// What the header states.
#[derive(Debug)]
pub(crate) struct Header<'a> {
    pub(crate) kind: FilterKind,
    pub(crate) probe: u64,
    pub(crate) schema: &'a str,
    pub(crate) position: Option<u64>,
    pub(crate) attachment: &'a [u8],
}

/// Where a snapshot is written to.
pub(crate) struct Sink<'a> {
    to: &'a mut dyn Write,
    sum: crc32fast::Hasher,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(to: &'a mut dyn Write) -> Self {
        Self { to, sum: crc32fast::Hasher::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sum.update(bytes);
        self.to.write_all(bytes)
    }

    fn seal(&mut self) -> io::Result<()> {
        self.to.write_all(&self.sum.clone().finalize().to_le_bytes())
    }

    /// Writes the header. Its schema and its attachment must not be longer than the format allows.
    pub(crate) fn header(&mut self, header: &Header<'_>) -> io::Result<()> {
        let Header { kind, probe, schema, position, attachment } = *header;
        self.put(&MAGIC)?;
        self.put(&VERSION.to_le_bytes())?;
        self.put(&[kind.number()])?;
        self.put(&probe.to_le_bytes())?;
        self.put(&[schema.len() as u8])?;
        self.put(schema.as_bytes())?;
        self.put(&[u8::from(position.is_some())])?;
        self.put(&position.unwrap_or(0).to_le_bytes())?;
        self.put(&(attachment.len() as u32).to_le_bytes())?;
        self.seal()?;
        self.put(attachment)?;
        self.seal()
    }

    /// Writes what a kind of filter states beside its tables.
    pub(crate) fn head(&mut self, head: Head) -> io::Result<()> {
        if head.bytes().is_empty() {
            return Ok(());
        }
        self.put(head.bytes())?;
        self.seal()
    }

    /// Writes a table. The memory that the save holds for it is free afterwards.
    pub(crate) fn section(&mut self, image: TableImage<'_>) -> io::Result<()> {
        let (Shape { encoding, slots, fingerprint_bits, payload_bits: _ }, buckets) = image.layout();
        let limit = image.table().facts().limit;
        self.put(&[encoding_number(encoding) | limit.number() << 1, slots as u8, fingerprint_bits as u8])?;
        self.put(&(buckets as u64).to_le_bytes())?;
        self.seal()?;
        let mut bytes = [[0; 8]; CHUNK];
        let copies = image.read(&mut |words| {
            let bytes = &mut bytes[..words.len()];
            for (bytes, word) in bytes.iter_mut().zip(words) {
                *bytes = word.to_le_bytes();
            }
            self.put(bytes.as_flattened())
        })?;
        self.put(&copies.to_le_bytes())
    }

    /// Writes the last seal, and flushes.
    pub(crate) fn end(mut self) -> io::Result<()> {
        self.seal()?;
        self.to.flush()
    }
}
