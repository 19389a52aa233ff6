//! PURE: a snapshot in chunks. Each chunk has a checksum of its own, and their lengths must add up to that of the
//! whole.

use std::io::{self, Read, Write};

use crate::log::EngineError;

/// Small enough that other commands do not wait long behind a chunk, large enough that a snapshot has few chunks.
pub(crate) const CHUNK: usize = 1 << 20;

const CHECKSUM: usize = size_of::<u32>();

/// Cuts the written bytes into chunks, and passes on each with its checksum.
pub(crate) struct ChunkWriter<F> {
    size: usize,
    put: F,
    filled: Vec<u8>,
    sums: Vec<u32>,
    bytes: u64,
}

impl<F> ChunkWriter<F>
where
    F: FnMut(usize, Vec<u8>) -> Result<(), EngineError>,
{
    /// Each chunk is at most `size` bytes long. `put` receives the number of a chunk, from 0 on, and the chunk.
    pub(crate) fn new(size: usize, put: F) -> Self {
        Self { size, put, filled: Vec::new(), sums: Vec::new(), bytes: 0 }
    }

    /// Passes on the last chunk. Returns the number of bytes, and the checksum of each chunk.
    pub(crate) fn finish(mut self) -> io::Result<(u64, Vec<u32>)> {
        if !self.filled.is_empty() {
            self.hand_on()?;
        }
        Ok((self.bytes, self.sums))
    }

    fn hand_on(&mut self) -> io::Result<()> {
        let mut chunk = std::mem::take(&mut self.filled);
        let sum = crc32fast::hash(&chunk);
        self.bytes += chunk.len() as u64;
        chunk.extend(sum.to_le_bytes());
        (self.put)(self.sums.len(), chunk).map_err(io::Error::other)?;
        self.sums.push(sum);
        Ok(())
    }
}

impl<F> Write for ChunkWriter<F>
where
    F: FnMut(usize, Vec<u8>) -> Result<(), EngineError>,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.filled.capacity() == 0 {
            self.filled.reserve_exact(self.size + CHECKSUM);
        }
        let taken = bytes.len().min(self.size - self.filled.len());
        self.filled.extend(&bytes[..taken]);
        if self.filled.len() == self.size {
            self.hand_on()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads chunks as one stream.
pub(crate) struct ChunkReader<F> {
    get: F,
    /// How many bytes are still to come, without those of the present chunk.
    left: u64,
    next: usize,
    chunk: io::Cursor<Vec<u8>>,
}

impl<F> ChunkReader<F>
where
    F: FnMut(usize) -> Result<Option<Vec<u8>>, EngineError>,
{
    /// `get` receives the number of a chunk and returns it as `put` received it, or `None` if it is missing.
    /// `bytes` is the length of the whole.
    pub(crate) fn new(bytes: u64, get: F) -> Self {
        Self { get, left: bytes, next: 0, chunk: io::Cursor::default() }
    }
}

impl<F> Read for ChunkReader<F>
where
    F: FnMut(usize) -> Result<Option<Vec<u8>>, EngineError>,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.left == 0 {
                return Ok(read);
            }
            let number = self.next;
            let sealed = (self.get)(number).map_err(io::Error::other)?;
            let chunk = open(number, sealed).map_err(io::Error::other)?;
            self.left = self.left.checked_sub(chunk.len() as u64).ok_or_else(|| {
                let more =
                    EngineError::Damaged(format!("chunk {number} of the snapshot is longer than what is missing"));
                io::Error::other(more)
            })?;
            self.next += 1;
            self.chunk = io::Cursor::new(chunk);
        }
    }
}

/// The checksum of a chunk that was read back.
pub(crate) fn checksum(number: usize, sealed: Option<Vec<u8>>) -> Result<u32, EngineError> {
    open(number, sealed).map(|chunk| crc32fast::hash(&chunk))
}

fn open(number: usize, sealed: Option<Vec<u8>>) -> Result<Vec<u8>, EngineError> {
    let damaged = |what| EngineError::Damaged(format!("chunk {number} of the snapshot {what}"));
    let mut chunk = sealed.ok_or_else(|| damaged("is missing"))?;
    let sum = chunk.split_last_chunk::<CHECKSUM>().map(|(_, sum)| u32::from_le_bytes(*sum));
    let sum = sum.ok_or_else(|| damaged("is too short"))?;
    chunk.truncate(chunk.len() - CHECKSUM);
    // Reading an empty chunk would never end.
    if chunk.is_empty() || crc32fast::hash(&chunk) != sum {
        return Err(damaged("does not have its checksum"));
    }
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_or_an_error() {
        for len in [1, 9, 10, 11, 95] {
            let bytes: Vec<u8> = (0..len).collect();
            let mut chunks = Vec::new();
            let mut writer = ChunkWriter::new(10, |number, chunk| {
                assert_eq!(number, chunks.len());
                chunks.push(chunk);
                Ok(())
            });
            writer.write_all(&bytes).unwrap();
            let (written, sums) = writer.finish().unwrap();
            assert_eq!((written, sums.len()), (len.into(), usize::from(len).div_ceil(10)));
            let read = |chunks: &[Vec<u8>], bytes| {
                let mut found = Vec::new();
                let get = |number| Ok(chunks.get(number).cloned());
                ChunkReader::new(bytes, get).read_to_end(&mut found).map(|_| found)
            };
            assert_eq!(read(&chunks, len.into()).unwrap(), bytes);
            let last = chunks.len() - 1;
            assert!(read(&chunks[..last], len.into()).unwrap_err().to_string().contains("is missing"));
            assert!(read(&chunks, u64::from(len) + 1).is_err());
            for byte in 0..chunks[last].len() {
                let mut damaged = chunks.clone();
                damaged[last][byte] ^= 1;
                assert!(read(&damaged, len.into()).unwrap_err().to_string().contains("checksum"), "byte {byte}");
            }
        }
    }
}
